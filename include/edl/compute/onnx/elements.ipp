// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <numbers>

#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/dropout.hpp"
#include "edl/compute/nn/layer/layer_norm.hpp"
#include "edl/compute/nn/layer/pad.hpp"
#include "edl/compute/nn/layer/reshape.hpp"
#include "edl/compute/nn/layer/scale.hpp"
#include "edl/compute/nn/layer/slice.hpp"
#include "edl/compute/nn/layer/transpose.hpp"
#include "edl/compute/onnx/elements.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

inline value same(value const& x, std::string name) { return {std::move(name), x.extents, x.as}; }

/// The same samples with the channels as the last axis.
inline value channels_last(graph& g, value const& x) {
  return g.as(x, x.extents.flat() ? form::rows : form::places);
}

}  // namespace detail

EDL_INLINE value to_onnx(graph& g, nn::dense const& l, value const& x) {
  shape const out = l.output(x.extents);
  bool const rows = !l.each_place || x.extents.flat();
  std::vector<std::string> inputs{g.as(x, rows ? form::rows : form::places).name};
  if (rows) {
    // The form that PyTorch's exporter writes: OpenCV 4.6 reads only a Gemm whose kernel is transposed.
    inputs.push_back(g.variable("kernel", {1, 0}));
    if (l.use_bias) inputs.push_back(g.variable("bias"));
    return {g.add("Gemm", inputs, {{"transB", std::int64_t(1)}}), out};
  }
  inputs.push_back(g.variable("kernel"));
  std::string y = g.add("MatMul", inputs);
  if (l.use_bias) y = g.add("Add", {y, g.variable("bias")});
  return {y, out, form::places};
}

EDL_INLINE value to_onnx(graph& g, nn::flatten const& l, value const& x) {
  value y = g.as(x, form::rows);
  y.extents = l.output(x.extents);
  return y;
}
EDL_INLINE value to_onnx(graph&, nn::identity const&, value const& x) { return x; }
EDL_INLINE value to_onnx(graph&, nn::dropout const&, value const& x) { return x; }

EDL_INLINE value to_onnx(graph& g, nn::relu const&, value const& x) {
  return detail::same(x, g.add("Relu", {x.name}));
}
EDL_INLINE value to_onnx(graph& g, nn::leaky_relu const& l, value const& x) {
  return detail::same(x, g.add("LeakyRelu", {x.name}, {{"alpha", l.resolve(g.set())}}));
}
EDL_INLINE value to_onnx(graph& g, nn::sigmoid const&, value const& x) {
  return detail::same(x, g.add("Sigmoid", {x.name}));
}
EDL_INLINE value to_onnx(graph& g, nn::tanh const&, value const& x) {
  return detail::same(x, g.add("Tanh", {x.name}));
}
EDL_INLINE value to_onnx(graph& g, nn::gelu const&, value const& x) {
  std::string const erf = g.add("Erf", {g.add("Mul", {x.name, g.number(float(1 / std::numbers::sqrt2))})});
  std::string const twice = g.add("Mul", {x.name, g.add("Add", {erf, g.number(1)})});
  return detail::same(x, g.add("Mul", {twice, g.number(0.5f)}));
}
EDL_INLINE value to_onnx(graph& g, nn::silu const&, value const& x) {
  return detail::same(x, g.add("Mul", {x.name, g.add("Sigmoid", {x.name})}));
}
EDL_INLINE value to_onnx(graph& g, nn::elu const& l, value const& x) {
  return detail::same(x, g.add("Elu", {x.name}, {{"alpha", l.resolve(g.set())}}));
}
EDL_INLINE value to_onnx(graph& g, nn::softplus const&, value const& x) {
  return detail::same(x, g.add("Softplus", {x.name}));
}
EDL_INLINE value to_onnx(graph& g, nn::scale const& l, value const& x) {
  float const factor =
      l.factor.resolve(g.set(), "the factor of a scale", -setting::unbounded, setting::unbounded);
  return detail::same(x, g.add("Mul", {x.name, g.number(factor)}));
}

EDL_INLINE value to_onnx(graph& g, nn::slice const& l, value const& x) {
  bool const whole = l.along == nn::places;
  value const from = whole ? g.as(x, form::places) : detail::channels_last(g, x);
  return {g.add("Slice", {from.name, g.numbers({l.first}), g.numbers({l.first + l.count}),
                          g.numbers({whole ? 1 : -1})}),
          l.output(x.extents), from.as};
}
EDL_INLINE value to_onnx(graph& g, nn::pad const& l, value const& x) {
  bool const first = x.as == form::channels_first;
  value const from = first ? x : g.as(x, form::pictures);
  std::vector<std::int64_t> by{0};
  for (bool const after : {false, true}) {
    extent const places = after ? l.after : l.before;
    int const channels = after ? l.channels_after : l.channels_before;
    if (after) by.push_back(0);
    if (first) by.push_back(channels);
    by.insert(by.end(), {places.height, places.width});
    if (!first) by.push_back(channels);
  }
  return {g.add("Pad", {from.name, g.numbers(by), g.number(l.value)}), l.output(x.extents), from.as};
}
EDL_INLINE value to_onnx(graph& g, nn::reshape const& l, value const& x) {
  shape const out = l.output(x.extents);
  value const from = x.as == form::channels_first ? g.as(x, form::places) : x;
  return {g.add("Reshape", {from.name, g.numbers({0, out.height * out.width, out.channels})}), out,
          form::places};
}
EDL_INLINE value to_onnx(graph& g, nn::transpose const& l, value const& x) {
  std::vector<std::int64_t> const turn{0, 2, 1};
  return {g.add("Transpose", {g.as(x, form::places).name}, {{"perm", turn}}), l.output(x.extents),
          form::places};
}
EDL_INLINE value to_onnx(graph& g, nn::softmax const&, value const& x) {
  value const from = detail::channels_last(g, x);
  return detail::same(from, g.add("Softmax", {from.name}, {{"axis", std::int64_t(-1)}}));
}
EDL_INLINE value to_onnx(graph& g, nn::log_softmax const&, value const& x) {
  value const from = detail::channels_last(g, x);
  return detail::same(from, g.add("LogSoftmax", {from.name}, {{"axis", std::int64_t(-1)}}));
}
EDL_INLINE value to_onnx(graph& g, nn::layer_norm const& l, value const& x) {
  value const from = detail::channels_last(g, x);
  return detail::same(from, g.add("LayerNormalization", {from.name, g.variable("gamma"), g.variable("beta")},
                                  {{"axis", std::int64_t(-1)}, {"epsilon", l.epsilon}}));
}

}  // namespace edl::onnx
