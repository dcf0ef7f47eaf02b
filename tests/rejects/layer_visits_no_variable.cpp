// SPDX-License-Identifier: Apache-2.0
// rejects: edl: `variables` of an own layer calls `visit.edl::nn::variable_spec
// Lines: 80
#include "edl/edl.hpp"
namespace nn = edl::nn;

struct own {
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class Visit>
  constexpr void variables(edl::shape in, Visit&& visit) const {
    visit("factor", in.channels);
  }
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
