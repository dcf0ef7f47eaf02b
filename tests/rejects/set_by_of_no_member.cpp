// SPDX-License-Identifier: Apache-2.0
// rejects: edl: `set_by` takes a member of the model.s struct
#include "edl/compute/nn/layers.hpp"
namespace nn = edl::nn;
constexpr edl::hyperparameter<float> drop{0.5f, "share", 0, 1};
constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dropout{.rate = edl::set_by<&drop>});
int main() {}
