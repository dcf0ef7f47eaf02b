// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "edl/compute/nn/layer/gather.hpp"
#include "edl/compute/nn/layer/graph_joint.hpp"
#include "edl/compute/onnx/join.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {

EDL_INLINE value join(graph& g, nn::merge how, std::vector<value> branches, shape out) {
  bool const flat = out.flat(), beside = how == nn::merge::concat;
  auto const first = std::ranges::any_of(
      branches, [](value const& v) { return v.as == form::channels_first && !v.extents.flat(); });
  form const as = flat ? form::rows : first ? form::channels_first : form::places;
  std::vector<std::string> names;
  for (value const& v : branches) names.push_back(g.as(v, as).name);
  if (beside) return {g.add("Concat", names, {{"axis", std::int64_t(flat || first ? 1 : 2)}}), out, as};
  std::string y = names[0];
  for (std::size_t i = 1; i < names.size(); ++i)
    y = g.add(how == nn::merge::sum ? "Add" : "Mul", {y, names[i]});
  return {y, out, as};
}

EDL_INLINE value join(graph& g, nn::matrix_product const&, std::vector<value> results, shape out) {
  std::string const a = g.as(results[0], form::places).name, b = g.as(results[1], form::places).name;
  return {g.add("MatMul", {a, b}), out, form::places};
}

EDL_INLINE value to_onnx(graph& g, nn::row_ids const&, value const& x) {
  return {g.add("Unsqueeze", {x.name, g.numbers({-1})}), x.extents};
}
EDL_INLINE value join(graph& g, nn::gathered const&, std::vector<value> results, shape out) {
  std::vector<attribute> const of_each_sample{{"batch_dims", std::int64_t(1)}};
  return {g.add("GatherND", {g.as(results[0], form::places).name, results[1].name}, of_each_sample), out,
          form::places};
}

EDL_INLINE void add_outputs(graph& g, value const& y, output_names const& names) {
  form const as = y.extents.flat() ? form::rows : y.extents.height > 1 ? form::pictures : form::places;
  value const all = g.as(y, names.empty() ? as : form::rows);
  if (names.empty()) return g.output("output", all);
  std::int64_t first = 0;
  for (auto const& [name, size] : names) {
    std::string const part =
        g.add("Slice", {all.name, g.numbers({first}), g.numbers({first + size}), g.numbers({1})});
    g.output(name, {part, {1, 1, size}});
    first += size;
  }
}

}  // namespace edl::onnx
