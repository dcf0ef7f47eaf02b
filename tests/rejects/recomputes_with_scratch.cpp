// SPDX-License-Identifier: Apache-2.0
// rejects: edl: this layer says `recomputes`, and has `scratch`
// facts: layer_misses<0, .*own,
#include "edl/edl.hpp"

namespace nn = edl::nn;

struct own {
  static constexpr bool recomputes = true;
  constexpr std::size_t scratch(edl::shape in, int batch) const { return in.size() * std::size_t(batch); }
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class D>
  void forward(nn::pass<D>& p, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = p.scratch[0] + a.x[i];
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.dx.size(); ++i) a.dx[i] = a.dy[i];
  }
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
