// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "edl/compute/nn/layer/attention.hpp"
#include "edl/compute/nn/layer/cross_attention.hpp"
#include "edl/compute/nn/layer/positions.hpp"
#include "edl/compute/nn/layer/recurrent.hpp"
#include "edl/compute/nn/padding_mask.hpp"
#include "edl/compute/onnx/sequences.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

inline constexpr std::int64_t as_float = 1, as_int32 = 6, as_int64 = 7;

/// 1 for each valid place, with a third axis.
inline std::string ones_of(graph& g, graph::mask const& m) {
  return g.add("Unsqueeze", {g.add("Cast", {m.name}, {{"to", as_float}}), g.numbers({-1})});
}

inline std::vector<std::int64_t> counted_to(int n) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}

/// Rotates queries or keys (n, heads, places, width) by the angles of `attention{.rotary = true}`.
inline std::string turned(graph& g, std::string const& x, attention_geometry const& of) {
  auto const half = std::size_t(of.width) / 2;
  std::vector<float> cosine, sine;
  for (int place = 0; place < of.places; ++place)
    for (std::size_t i = 0; i < half; ++i) {
      double const angle = of.turn(std::size_t(place), i);
      cosine.push_back(float(std::cos(angle)));
      sine.push_back(float(std::sin(angle)));
    }
  std::vector<std::int64_t> const dims{of.places, std::int64_t(half)};
  std::string const c = g.tensor("cosine", dims, cosine), s = g.tensor("sine", dims, sine);
  // The products of queries and keys are the same in any order of channels.
  std::vector<std::string> parts;
  if (of.interleaved) {
    for (std::int64_t const first : {0, 1}) {
      std::vector<std::int64_t> from;
      for (std::size_t i = 0; i < half; ++i) from.push_back(2 * std::int64_t(i) + first);
      parts.push_back(g.add("Gather", {x, g.numbers(from)}, {{"axis", std::int64_t(-1)}}));
    }
  } else {
    parts = g.add("Split", 2, {x}, {{"axis", std::int64_t(-1)}});
  }
  auto const times = [&](std::string const& a, std::string const& b) { return g.add("Mul", {a, b}); };
  return g.add("Concat",
               {g.add("Sub", {times(parts[0], c), times(parts[1], s)}),
                g.add("Add", {times(parts[0], s), times(parts[1], c)})},
               {{"axis", std::int64_t(-1)}});
}

inline std::vector<attribute> turned_heads() { return {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}; }
/// (n, places, heads · width) as (n, heads, places, width), and back.
inline std::string by_head(graph& g, std::string const& x, int places, int heads, int width) {
  return g.add("Transpose", {g.add("Reshape", {x, g.numbers({0, places, heads, width})})}, turned_heads());
}
inline std::string joined_heads(graph& g, std::string const& x, int places, int channels) {
  return g.add("Reshape", {g.add("Transpose", {x}, turned_heads()), g.numbers({0, places, channels})});
}
/// The scores of each query with each key.
inline std::string scores_of(graph& g, std::string const& query, std::string const& key, int width) {
  std::string const across = g.add("Transpose", {key}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}});
  return g.add("Mul", {g.add("MatMul", {query, across}), g.number(1 / std::sqrt(float(width)))});
}
inline std::string weights_of(graph& g, std::string const& scores) {
  return g.add("Softmax", {scores}, {{"axis", std::int64_t(-1)}});
}

/// Exports a recurrent layer. `gates`: the model's gates in ONNX's order; `bias`: of inputs, then of states.
template <class L>
value recurrent(graph& g, L const& l, value const& x, std::string_view op,
                std::vector<std::size_t> const& gates, std::vector<float> const& bias) {
  auto const units = std::size_t(l.units), all = gates.size() * units,
             inputs = std::size_t(x.extents.channels);
  int const steps = x.extents.height * x.extents.width;
  auto const by_gate = [&](std::string_view name, std::size_t rows) {
    std::vector<float> const from = g.elements(name);
    std::vector<float> to;
    for (std::size_t const gate : gates)
      for (std::size_t u = 0; u < units; ++u)
        for (std::size_t r = 0; r < rows; ++r) to.push_back(from[r * all + gate * units + u]);
    return g.tensor(name, {1, std::int64_t(all), std::int64_t(rows)}, std::move(to));
  };
  std::vector<float> both;
  for (std::size_t first = 0; first < 2 * all; first += all)
    for (std::size_t const gate : gates)
      for (std::size_t u = 0; u < units; ++u) both.push_back(bias[first + gate * units + u]);

  auto const mask = g.mask_of(x.extents);
  std::string rows = g.as(x, form::places).name, order, counts;
  auto const along = [&](std::string const& to) {
    return g.add("Expand", {g.add("Unsqueeze", {order, g.numbers({-1})}), g.add("Shape", {to})});
  };
  if (!mask.name.empty()) {
    std::string const n = g.add("ReduceSum", {g.add("Cast", {mask.name}, {{"to", as_int32}}), g.numbers({1})},
                                {{"keepdims", std::int64_t(0)}});
    counts = g.add("Max", {n, g.add("Cast", {g.numbers({1})}, {{"to", as_int32}})});
    if (!mask.prefix) {  // valid places come first, in their order
      std::vector<std::int64_t> early = counted_to(steps), late = early;
      for (std::int64_t& i : early) i = 2 * steps - i;
      for (std::int64_t& i : late) i = steps - i;
      order = g.add("TopK", 2,
                    {g.add("Where", {mask.name, g.numbers(early), g.numbers(late)}), g.numbers({steps})})[1];
      rows = g.add("GatherElements", {rows, along(rows)}, {{"axis", std::int64_t(1)}});
    }
  }
  std::vector<std::int64_t> const turn{1, 0, 2};
  std::vector<attribute> options{{"hidden_size", std::int64_t(units)},
                                 {"direction", std::string_view(l.reverse ? "reverse" : "forward")}};
  if (op == "GRU") options.push_back({"linear_before_reset", std::int64_t(1)});
  auto const y =
      g.add(op, 2,
            {g.add("Transpose", {rows}, {{"perm", turn}}), by_gate("kernel", inputs),
             by_gate("recurrent_kernel", units), g.tensor("bias", {1, std::int64_t(2 * all)}, both), counts},
            options);
  if (l.last) {
    std::string state = g.add("Squeeze", {y[1], g.numbers({0})});
    if (!mask.name.empty())
      state = g.add("Mul", {state, g.add("ReduceMax", {g.add("Cast", {mask.name}, {{"to", as_float}})},
                                         {{"axes", std::vector<std::int64_t>{1}}})});
    return {state, l.output(x.extents)};
  }
  std::string all_states = g.add("Transpose", {g.add("Squeeze", {y[0], g.numbers({1})})}, {{"perm", turn}});
  if (!order.empty())
    all_states =
        g.add("ScatterElements", {all_states, along(all_states), all_states}, {{"axis", std::int64_t(1)}});
  if (!mask.name.empty()) all_states = g.add("Mul", {all_states, ones_of(g, mask)});
  return {all_states, l.output(x.extents), form::places};
}

}  // namespace detail

EDL_INLINE graph::mask mask_of(graph& g, nn::padding_mask const& l, value const& x) {
  value const& from = l.row > 0 ? *g.placed(l.first) : x;
  int const places = l.places(from.extents);
  if (l.by_length) return {g.add("Less", {g.numbers(detail::counted_to(places)), from.name}), places, true};
  return {g.add("Not", {g.add("Equal", {from.name, g.numbers({l.id})})}), places};
}

EDL_INLINE value to_onnx(graph& g, nn::attention const& l, value const& x) {
  auto const of = l.geometry(x.extents);
  auto const linear = [&](std::string const& from, std::string const& kernel, std::string const& bias,
                          bool has) {
    std::string const y = g.add("MatMul", {from, g.variable(kernel)});
    return has ? g.add("Add", {y, g.variable(bias)}) : y;
  };
  std::string all =
      linear(g.as(x, form::places).name, "query_key_value_kernel", "query_key_value_bias", l.use_bias);
  if (l.group() > 1) {
    std::vector<std::int64_t> from;
    l.each_run(of.channels(), [&](std::size_t, std::size_t first, std::size_t n) {
      for (std::size_t i = first; i < first + n; ++i) from.push_back(std::int64_t(i));
    });
    all = g.add("Gather", {all, g.numbers(from)}, {{"axis", std::int64_t(-1)}});
  }
  auto const parts = g.add("Split", 3, {all}, {{"axis", std::int64_t(-1)}});
  auto const heads = [&](std::size_t part) {
    std::string y = detail::by_head(g, parts[part], of.places, of.heads, of.width);
    if (part < 2 && l.qk_norm) {
      std::string const squares =
          g.add("ReduceMean", {g.add("Mul", {y, y})}, {{"axes", std::vector<std::int64_t>{-1}}});
      y = g.add("Div", {y, g.add("Sqrt", {g.add("Add", {squares, g.number(l.norm_epsilon)})})});
      y = g.add("Mul", {y, g.variable(part == 0 ? "query_norm" : "key_norm")});
    }
    return part < 2 && l.rotary ? detail::turned(g, y, of) : y;
  };
  std::string const query = heads(0), key = heads(1), data = heads(2);
  std::string scores = detail::scores_of(g, query, key, of.width);
  if (l.softcap > 0)
    scores =
        g.add("Mul", {g.add("Tanh", {g.add("Div", {scores, g.number(l.softcap)})}), g.number(l.softcap)});
  auto const mask = g.mask_of(x.extents);
  if (of.window > 0 && !mask.name.empty() && !mask.prefix)
    throw error(
        "a layer 'attention' with a window cannot be exported where padding may lie between places: its mask "
        "has to be by length");
  constexpr float never = -1e30f;
  if (of.causal) {
    auto const n = std::size_t(of.places);
    std::vector<float> unseen(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k)
        if (k > i || k < of.first_seen(i)) unseen[i * n + k] = never;
    scores = g.add("Add", {scores, g.tensor("unseen", {of.places, of.places}, std::move(unseen))});
  }
  if (!mask.name.empty()) {
    std::string const keys = g.add("Unsqueeze", {mask.name, g.numbers({1, 2})});
    scores = g.add("Where", {keys, scores, g.number(never)});
  }
  std::string joined = detail::joined_heads(g, g.add("MatMul", {detail::weights_of(g, scores), data}),
                                            of.places, x.extents.channels);
  if (!mask.name.empty()) joined = g.add("Mul", {joined, detail::ones_of(g, mask)});
  return {linear(joined, "output_kernel", "output_bias", l.use_bias && l.output_bias), x.extents,
          form::places};
}

EDL_INLINE value join(graph& g, nn::attention_of_two const& l, std::vector<value> results, shape out) {
  int const places = out.height * out.width, keys = results[1].extents.height * results[1].extents.width,
            heads = l.of.heads, width = out.channels / heads;
  std::string const query = detail::by_head(g, g.as(results[0], form::places).name, places, heads, width);
  auto const parts = g.add("Split", 2, {g.as(results[1], form::places).name}, {{"axis", std::int64_t(-1)}});
  std::string const key = detail::by_head(g, parts[0], keys, heads, width),
                    data = detail::by_head(g, parts[1], keys, heads, width),
                    weights = detail::weights_of(g, detail::scores_of(g, query, key, width));
  return {detail::joined_heads(g, g.add("MatMul", {weights, data}), places, out.channels), out, form::places};
}

EDL_INLINE value to_onnx(graph& g, nn::lstm const& l, value const& x) {
  auto const units = std::size_t(l.units);
  std::vector<float> bias = g.elements("bias");
  for (std::size_t u = 0; u < units; ++u) bias[units + u] += l.forget_bias;
  bias.resize(8 * units);
  return detail::recurrent(g, l, x, "LSTM", {0, 3, 1, 2}, bias);
}
EDL_INLINE value to_onnx(graph& g, nn::gru const& l, value const& x) {
  return detail::recurrent(g, l, x, "GRU", {0, 1, 2}, g.elements("bias"));
}

EDL_INLINE value to_onnx(graph& g, nn::positions const&, value const& x) {
  std::vector<float> rows = g.elements("rows");
  rows.resize(x.extents.size());
  value const from = g.as(x, form::places);
  std::string const used =
      g.tensor("rows", {x.extents.height * x.extents.width, x.extents.channels}, std::move(rows));
  return {g.add("Add", {from.name, used}), x.extents, form::places};
}
EDL_INLINE value to_onnx(graph& g, nn::sinusoidal_positions const&, value const& x) {
  auto const places = x.extents.height * x.extents.width, half = x.extents.channels / 2;
  std::vector<float> rows(x.extents.size());
  for (int i = 0; i < half; ++i)
    for (int place = 0; place < places; ++place) {
      double const angle = double(place) * std::pow(10'000.0, -double(i) / double(half));
      rows[std::size_t(place * x.extents.channels + i)] = float(std::sin(angle));
      rows[std::size_t(place * x.extents.channels + half + i)] = float(std::cos(angle));
    }
  value const from = g.as(x, form::places);
  return {g.add("Add", {from.name, g.tensor("rows", {places, x.extents.channels}, std::move(rows))}),
          x.extents, form::places};
}

}  // namespace edl::onnx
