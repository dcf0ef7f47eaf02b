// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "edl/compute/nn/layer/compressed_interaction.hpp"
#include "edl/compute/nn/layer/cross.hpp"
#include "edl/compute/nn/layer/embedding.hpp"
#include "edl/compute/nn/layer/embedding_bag.hpp"
#include "edl/compute/nn/layer/factorization_machine.hpp"
#include "edl/compute/onnx/ids.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

inline std::vector<attribute> const drop_axis{{"keepdims", std::int64_t(0)}};

inline std::string sum(graph& g, std::string const& x, std::int64_t axis) {
  return g.add("ReduceSum", {x, g.numbers({axis})}, drop_axis);
}

}  // namespace detail

EDL_INLINE std::string combine(graph& g, std::string const& rows, std::string const& weights,
                               nn::combiner how) {
  std::string const each = g.add("Mul", {rows, g.add("Unsqueeze", {weights, g.numbers({-1})})});
  std::string const all = detail::sum(g, each, 1);
  if (how == nn::combiner::sum) return all;
  bool const root = how == nn::combiner::sqrtn;
  std::string const axis = g.numbers({1});
  std::string norm = g.add("ReduceSum", {root ? g.add("Mul", {weights, weights}) : weights, axis});
  if (root) norm = g.add("Sqrt", {norm});
  std::string const none = g.add("Equal", {norm, g.number(0)});
  return g.add("Where", {none, g.number(0), g.add("Div", {all, g.add("Where", {none, g.number(1), norm})})});
}

EDL_INLINE value to_onnx(graph& g, nn::embedding const& l, value const& x) {
  return {g.add("Gather", {g.variable("embeddings"), x.name}), l.output(x.extents), form::places};
}

EDL_INLINE value to_onnx(graph& g, nn::embedding_bag const& l, value const& x) {
  std::string const first = g.numbers({l.mask_zero ? 1 : 0}), zero = g.number(0);
  std::string const has = g.add(
      "And", {g.add("GreaterOrEqual", {x.name, first}), g.add("Less", {x.name, g.numbers({l.vocabulary})})});
  std::string const rows =
      g.add("Gather", {g.variable("embeddings"), g.add("Where", {has, x.name, g.numbers({0})})});
  std::string const weights = g.add("Where", {has, x.weights.empty() ? g.number(1) : x.weights, zero});
  return {combine(g, rows, weights, l.combiner), l.output(x.extents)};
}

EDL_INLINE value to_onnx(graph& g, nn::factorization_machine const&, value const& x) {
  std::string const v = g.as(x, form::places).name, all = detail::sum(g, v, 1),
                    squares = detail::sum(g, g.add("Mul", {v, v}), 1);
  std::string const twice = g.add("Sub", {g.add("Mul", {all, all}), squares});
  std::string const y = g.add("ReduceSum", {twice, g.numbers({1})});
  return {g.add("Mul", {y, g.number(0.5f)}), {1, 1, 1}};
}

EDL_INLINE value to_onnx(graph& g, nn::cross const& l, value const& x) {
  auto const n = x.extents.size(), m = l.vectors ? 1 : n;
  std::vector<float> const kernel = g.elements("kernel"), bias = g.elements("bias");
  std::string const first = g.as(x, form::rows).name;
  std::string y = first;
  for (std::size_t i = 0; i < std::size_t(l.layers); ++i) {
    auto const part = [&](std::vector<float> const& of, std::size_t size) {
      return std::vector<float>(of.begin() + std::ptrdiff_t(i * size),
                                of.begin() + std::ptrdiff_t((i + 1) * size));
    };
    std::string const number = "_" + std::to_string(i);
    std::string const w =
        g.tensor("kernel" + number, {std::int64_t(n), std::int64_t(m)}, part(kernel, n * m));
    std::string const b = g.tensor("bias" + number, {std::int64_t(n)}, part(bias, n));
    std::string z = g.add("MatMul", {y, w});
    if (!l.vectors) z = g.add("Add", {z, b});
    z = g.add("Mul", {first, z});
    if (l.vectors) z = g.add("Add", {z, b});
    y = g.add("Add", {z, y});
  }
  return {y, l.output(x.extents)};
}

EDL_INLINE value to_onnx(graph& g, nn::compressed_interaction const& l, value const& x) {
  std::string const first = g.as(x, form::places).name;
  std::int64_t const fields = x.extents.height * x.extents.width, maps = l.maps, depth = x.extents.channels;
  auto const beside = g.add("Unsqueeze", {first, g.numbers({1})});
  std::vector<std::string> sums;
  std::string y = first;
  std::vector<float> rest;
  if (l.layers > 1) rest = g.elements("kernel");
  for (std::int64_t i = 0, before = fields; i < l.layers; ++i, before = maps) {
    std::string const pairs = g.add("Mul", {g.add("Unsqueeze", {y, g.numbers({2})}), beside});
    std::string const rows = g.add("Reshape", {pairs, g.numbers({0, before * fields, depth})});
    std::string kernel;
    if (i == 0) {
      kernel = g.variable("first_kernel", {1, 0});
    } else {
      std::int64_t const size = before * fields * maps;
      std::vector<float> turned;
      for (std::int64_t k = 0; k < maps; ++k)
        for (std::int64_t p = 0; p < before * fields; ++p)
          turned.push_back(rest[std::size_t((i - 1) * size + p * maps + k)]);
      kernel = g.tensor("kernel_" + std::to_string(i), {maps, before * fields}, std::move(turned));
    }
    y = g.add("MatMul", {kernel, rows});
    sums.push_back(detail::sum(g, y, 2));
  }
  return {g.add("Concat", sums, {{"axis", std::int64_t(1)}}), l.output(x.extents)};
}

}  // namespace edl::onnx
