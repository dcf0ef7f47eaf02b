// SPDX-License-Identifier: Apache-2.0
// rejects: edl: the `to_onnx` of this layer should be a function beside it
// Lines: 25
#include "edl/edl.hpp"
namespace nn = edl::nn;

struct own {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  edl::onnx::value to_onnx(edl::onnx::graph&, edl::onnx::value const& x) const { return x; }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const&) const {}
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const&) const {}
};

struct net {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, own{}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<net>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};

int main(int argc, char** argv) { return edl::run<net>(argc, argv); }
