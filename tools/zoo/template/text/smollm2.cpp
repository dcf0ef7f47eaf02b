// SPDX-License-Identifier: Apache-2.0
// SmolLM2 of 135 million parameters (Ben Allal et al., "SmolLM2: when Smol goes big", 2025).
// `--checkpoint_dir_for_init=model.safetensors` continues from its published weights, and `generate
// --model_path=model.safetensors --tokenizer=tokenizer.json` writes texts. `length` may be longer: memory grows with it.
#include "llama.hpp"

struct smollm2 {
  static constexpr int length = 1024, width = 576, heads = 9, key_value_heads = 3, blocks = 30, hidden = 1536,
                       tokens = 49152;
  static constexpr float rotary_base = 100'000, epsilon = 1e-5f;
  static constexpr bool bias = false;
  static constexpr edl::rotary_scaling scaling{};
};

int main(int argc, char** argv) { return edl::run<llama<smollm2>>(argc, argv); }
