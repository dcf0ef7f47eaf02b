// SPDX-License-Identifier: Apache-2.0
// Qwen2.5 of 0.5 billion parameters (Yang et al., "Qwen2.5 technical report", 2024).
// `--checkpoint_dir_for_init=model.safetensors` continues from its published weights, and `generate
// --model_path=model.safetensors --tokenizer=tokenizer.json` writes texts. `length` may be longer: memory grows with it.
#include "llama.hpp"

struct qwen2 {
  static constexpr int length = 1024, width = 896, heads = 14, key_value_heads = 2, blocks = 24, hidden = 4864,
                       tokens = 151936;
  static constexpr float rotary_base = 1'000'000, epsilon = 1e-6f;
  static constexpr bool bias = true;
  static constexpr edl::rotary_scaling scaling{};
};

int main(int argc, char** argv) { return edl::run<llama<qwen2>>(argc, argv); }
