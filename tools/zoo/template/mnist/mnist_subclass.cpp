// SPDX-License-Identifier: Apache-2.0
// MNIST of blocks and a layer of one's own: what a Keras model that is a class of its own becomes here.
#include <cmath>
#include <edl/edl.hpp>

namespace nn = edl::nn;

/// A layer is a struct: how its shape follows, and what it does forward and backward. This one turns ink into
/// its logarithm, so that thin strokes count.
struct log_ink {
  static constexpr std::string_view name = "log_ink";
  static constexpr bool portable = false;  // it touches elements by itself, so that it runs on the processor
  static constexpr bool reads_y = false;

  constexpr edl::fit check(edl::shape) const { return edl::fit::fits; }
  constexpr edl::shape output(edl::shape in) const { return in; }

  template <class D>
  void forward(nn::pass<D>&, nn::forward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.y[i] = std::log1p(9 * a.x[i]) / std::log(typename D::scalar(10));
  }
  template <class D>
  void backward(nn::pass<D>&, nn::backward_args<typename D::scalar> const& a) const {
    for (std::size_t i = 0; i < a.dx.size(); ++i)
      a.dx[i] = a.dy[i] * 9 / ((1 + 9 * a.x[i]) * std::log(typename D::scalar(10)));
  }
};
/// The same for --export_onnx.
edl::onnx::value to_onnx(edl::onnx::graph& g, log_ink const&, edl::onnx::value const& x) {
  auto const more = g.add("Add", {g.add("Mul", {x.name, g.number(9)}), g.number(1)});
  return {g.add("Div", {g.add("Log", {more}), g.number(std::log(10.0f))}), x.extents, x.as};
}

constexpr auto block(int filters) {
  return nn::sequential(nn::conv2d{.filters = filters, .kernel = 3}, nn::batch_norm{.momentum = 0.9f}, nn::relu{},
                        nn::max_pool{.window = 2});
}

struct mnist {
  static constexpr auto network = nn::sequential(nn::image{.height = 28, .width = 28, .channels = 1}, log_ink{},
                                                 block(32), block(64), nn::dropout{.rate = 0.25f},
                                                 nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.05f, .momentum = 0.9f};
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<mnist>& into, edl::mode m) {
    into.features = record.floats("image", {28, 28, 1}) / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<mnist>(argc, argv); }
