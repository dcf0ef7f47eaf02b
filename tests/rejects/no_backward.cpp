// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer has no `template <class D> void backward
// facts: layer_misses<0, .*forgetful, edl::shape.1, 1, 3., .*missing_part::backward>
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
namespace nn = edl::nn;
struct forgetful {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const&) const {}
};
inline constexpr auto net = nn::sequential(nn::features{.count = 3}, forgetful{});
int main() { return int(edl::model<net, edl::cpu>::parameter_count); }
