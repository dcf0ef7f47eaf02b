// SPDX-License-Identifier: Apache-2.0
// A project outside the tree: a user's own layer, the installed headers and library, a help text that works.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct scale {
  float by = 2;
  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }
  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = by * a.x[i];
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.dx.size(); ++i) a.dx[i] = by * a.dy[i];
  }
};

struct consumer {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, scale{}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<consumer>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("y");
  }
};
static_assert(edl::model<consumer::network, edl::cpu>::parameter_count == 10);

int main(int argc, char** argv) { return edl::run<consumer>(argc, argv); }
