// SPDX-License-Identifier: Apache-2.0
// Llama 3.2 of 1 billion parameters (Grattafiori et al., "The Llama 3 herd of models", 2024).
// `--checkpoint_dir_for_init=model.safetensors` continues from its published weights, and `generate
// --model_path=model.safetensors --tokenizer=tokenizer.json` writes texts. `length` may be longer: memory grows with it.
#include "llama.hpp"

struct llama3 {
  static constexpr int length = 1024, width = 2048, heads = 32, key_value_heads = 8, blocks = 16, hidden = 8192,
                       tokens = 128256;
  static constexpr float rotary_base = 500'000, epsilon = 1e-5f;
  static constexpr bool bias = false;
  static constexpr edl::rotary_scaling scaling{.factor = 32, .low = 1, .high = 4, .original = 8192};
};

int main(int argc, char** argv) { return edl::run<llama<llama3>>(argc, argv); }
