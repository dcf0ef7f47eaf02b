// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "edl/compute/nn/layer/batch_norm.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"
#include "edl/compute/nn/layer/conv2d_transpose.hpp"
#include "edl/compute/nn/layer/group_norm.hpp"
#include "edl/compute/nn/layer/pools.hpp"
#include "edl/compute/nn/layer/upsample.hpp"
#include "edl/compute/onnx/pictures.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

using numbers = std::vector<std::int64_t>;

inline numbers pair_of(extent e) { return {e.height, e.width}; }

/// How far a window that slides over `g` reaches beyond the borders, at the begin and at the end of each
/// axis.
template <class Geometry>
numbers pads_of(Geometry const& g, extent window) {
  auto const after = [](int in, int out, int size, int stride, int before) {
    return std::max((out - 1) * stride + size - in - before, 0);
  };
  auto const [top, left] = std::pair(g.before.height, g.before.width);
  return {top, left, after(g.in.height, g.out.height, window.height, g.stride.height, top),
          after(g.in.width, g.out.width, window.width, g.stride.width, left)};
}

template <class Pool>
value pool(graph& g, Pool const& l, value const& x, std::string_view op) {
  auto const over = l.geometry(x.extents);
  return {g.add(op, {g.as(x, form::channels_first).name},
                {{"kernel_shape", pair_of(l.window)},
                 {"strides", pair_of(over.stride)},
                 {"pads", pads_of(over, l.window)}}),
          over.out, form::channels_first};
}

/// The mean or the greatest element of each channel. `absent` replaces places that are not valid.
inline value pool_places(graph& g, value const& x, bool mean) {
  shape const out{1, 1, x.extents.channels};
  if (x.extents.flat()) return g.as(x, form::rows);
  auto const mask = g.mask_of(x.extents);
  if (mask.name.empty()) {
    value const y{g.add(mean ? "GlobalAveragePool" : "GlobalMaxPool", {g.as(x, form::channels_first).name}),
                  out, form::channels_first};
    return g.as(y, form::rows);
  }
  std::string const rows = g.as(x, form::places).name, places = g.numbers({1});
  std::string const counts = g.add("Unsqueeze", {mask.name, g.numbers({-1})}), zero = g.number(0);
  std::string const kept =
      g.add("Where", {counts, rows, mean ? zero : g.number(std::numeric_limits<float>::lowest())});
  std::string const weights = g.add("Cast", {mask.name}, {{"to", std::int64_t(1)}});
  std::string const n = g.add("ReduceSum", {weights, places});  // keeps the reduced axis
  if (mean)
    return {g.add("Div", {g.add("ReduceSum", {kept, places}, {{"keepdims", std::int64_t(0)}}),
                          g.add("Max", {n, g.number(1)})}),
            out};
  std::string const most = g.add("ReduceMax", {kept}, {{"axes", numbers{1}}, {"keepdims", std::int64_t(0)}});
  return {g.add("Where", {g.add("Greater", {n, zero}), most, zero}), out};
}

}  // namespace detail

EDL_INLINE value to_onnx(graph& g, nn::conv2d const& l, value const& x) {
  auto const over = l.geometry(x.extents);
  std::vector<std::string> inputs{g.as(x, form::channels_first).name, g.variable("kernel", {3, 2, 0, 1})};
  if (l.use_bias) inputs.push_back(g.variable("bias"));
  return {g.add("Conv", inputs,
                {{"kernel_shape", detail::pair_of(l.kernel)},
                 {"strides", detail::pair_of(l.stride)},
                 {"pads", detail::pads_of(over, l.kernel)},
                 {"group", std::int64_t(l.groups)}}),
          over.out, form::channels_first};
}

EDL_INLINE value to_onnx(graph& g, nn::conv2d_transpose const& l, value const& x) {
  auto const back = l.geometry(x.extents);
  // How much larger the full result is than the wanted one; if it is smaller, zeros are appended.
  auto const excess = [](int in, int out, int size, int stride) { return (in - 1) * stride + size - out; };
  int const rows = excess(x.extents.height, back.in.height, l.kernel.height, l.stride.height),
            columns = excess(x.extents.width, back.in.width, l.kernel.width, l.stride.width);
  auto const after = [](int all, int before) { return std::int64_t(std::max(all - before, 0)); };
  std::vector<std::string> inputs{g.as(x, form::channels_first).name, g.variable("kernel", {3, 2, 0, 1})};
  if (l.use_bias) inputs.push_back(g.variable("bias"));
  return {
      g.add("ConvTranspose", inputs,
            {{"kernel_shape", detail::pair_of(l.kernel)},
             {"strides", detail::pair_of(l.stride)},
             {"pads", detail::numbers{back.before.height, back.before.width, after(rows, back.before.height),
                                      after(columns, back.before.width)}},
             {"output_padding", detail::numbers{std::max(-rows, 0), std::max(-columns, 0)}}}),
      back.in, form::channels_first};
}

EDL_INLINE value to_onnx(graph& g, nn::max_pool const& l, value const& x) {
  return detail::pool(g, l, x, "MaxPool");
}
EDL_INLINE value to_onnx(graph& g, nn::average_pool const& l, value const& x) {
  return detail::pool(g, l, x, "AveragePool");
}
EDL_INLINE value to_onnx(graph& g, nn::global_average_pool const&, value const& x) {
  return detail::pool_places(g, x, true);
}
EDL_INLINE value to_onnx(graph& g, nn::global_max_pool const&, value const& x) {
  return detail::pool_places(g, x, false);
}

EDL_INLINE value to_onnx(graph& g, nn::upsample const& l, value const& x) {
  std::string const scales = g.tensor("scales", {4}, {1, 1, float(l.factor.height), float(l.factor.width)});
  return {
      g.add(
          "Resize", {g.as(x, form::channels_first).name, "", scales},
          {{"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}),
      l.output(x.extents), form::channels_first};
}

EDL_INLINE value to_onnx(graph& g, nn::batch_norm const& l, value const& x) {
  auto const c = std::size_t(x.extents.channels);
  std::vector<float> const scale = l.scale ? g.elements("gamma") : std::vector<float>(c, 1);
  std::vector<float> beta = g.elements("beta");
  for (float& b : beta) b *= l.shift_gain;
  std::vector<double> factor, add;
  for (std::size_t i = 0; auto const variance : g.elements("moving_variance")) {
    factor.push_back(double(scale[i]) / std::sqrt(double(variance) + double(l.epsilon)));
    add.push_back(double(beta[i++]));
  }
  for (std::size_t i = 0; auto const mean : g.elements("moving_mean"))
    add[i] -= double(mean) * factor[i], ++i;
  std::string const gamma = l.scale ? g.variable("gamma") : g.tensor("gamma", {x.extents.channels}, scale),
                    shift = g.tensor("beta", {x.extents.channels}, std::move(beta));
  value const from = g.as(x, x.extents.flat() && x.as == form::rows ? form::rows : form::channels_first);
  std::string const y =
      g.add("BatchNormalization",
            {from.name, gamma, shift, g.variable("moving_mean"), g.variable("moving_variance")},
            {{"epsilon", l.epsilon}});
  g.scales_channels(y, std::move(factor), std::move(add));
  return {y, x.extents, from.as};
}

EDL_INLINE value to_onnx(graph& g, nn::group_norm const& l, value const& x) {
  value const from = g.as(x, form::channels_first);
  std::int64_t const c = x.extents.channels;
  auto const groups = std::size_t(l.groups);
  std::string const rows = g.add("Reshape", {from.name, g.numbers({0, l.groups, -1})});
  std::string const normal = g.add("InstanceNormalization",
                                   {rows, g.tensor("ones", {l.groups}, std::vector<float>(groups, 1)),
                                    g.tensor("zeros", {l.groups}, std::vector<float>(groups, 0))},
                                   {{"epsilon", l.epsilon}});
  std::string const back = g.add("Reshape", {normal, g.numbers({0, c, x.extents.height, x.extents.width})});
  return {g.add("Add", {g.add("Mul", {back, g.tensor("gamma", {c, 1, 1}, g.elements("gamma"))}),
                        g.tensor("beta", {c, 1, 1}, g.elements("beta"))}),
          x.extents, form::channels_first};
}

}  // namespace edl::onnx
