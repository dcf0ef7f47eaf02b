// SPDX-License-Identifier: Apache-2.0
// rejects: edl::nn::conv2d.* has no non-static data member named .*kernal
#include "edl/nn/layers.hpp"
constexpr edl::nn::conv2d conv{.filters = 3, .kernal = 3};
int main() {}
