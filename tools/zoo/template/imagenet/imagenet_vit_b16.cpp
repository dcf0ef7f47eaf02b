// SPDX-License-Identifier: Apache-2.0
// ViT-B/16, a vision transformer of 86 million parameters for pictures of 224 × 224 and 1,000 classes, with
// the names of its published weights (google/vit-base-patch16-224):
// `--checkpoint_dir_for_init=model.safetensors` continues from them. A record has `image`, 224 · 224 · 3
// bytes, and `label`. Pictures of 32 × 32 are made larger, so that `synthetic:pictures` and CIFAR-10 will do
// for a look.
#include "vit.hpp"

struct vit_b16_sizes {
  static constexpr int side = 224, patch = 16, width = 768, heads = 12, blocks = 12, hidden = 3072,
                       classes = 1000;
};

int main(int argc, char** argv) { return edl::run<vit<vit_b16_sizes>>(argc, argv); }
