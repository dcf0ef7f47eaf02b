// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "edl/compute/onnx/graph.hpp"
#include "edl/compute/onnx/preprocessing.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

/// Values of a record with their own extents, as far as the graph's forms can express them.
inline value declared(record_values const& of) {
  auto const e = [&](std::size_t i) { return int(of.extents[i]); };
  value v{.name = of.name, .extents = {1, 1, 1}};
  if (of.extents.size() == 3) {
    v.extents = {e(0), e(1), e(2)};
    v.as = form::pictures;
  } else if (of.extents.size() == 2) {
    v.extents = {e(0), 1, e(1)};
    v.as = form::places;
  } else {
    for (std::size_t const n : of.extents) v.extents.channels *= int(n);
  }
  return v;
}

/// Numbers of a sample in their smallest form: one, one for each channel, or all.
inline std::string spread(graph& g, std::string_view name, std::vector<float> const& all, shape of, form as) {
  if (std::ranges::all_of(all, [&](float x) { return x == all[0]; })) return g.number(all[0]);
  auto const channels = std::size_t(of.channels);
  bool repeats = as != form::rows;
  for (std::size_t i = channels; repeats && i < all.size(); ++i) repeats = all[i] == all[i - channels];
  if (repeats) return g.tensor(name, {of.channels}, {all.begin(), all.begin() + std::ptrdiff_t(channels)});
  if (as == form::pictures) return g.tensor(name, {of.height, of.width, of.channels}, all);
  return g.tensor(name, {std::int64_t(all.size())}, all);
}

}  // namespace detail

EDL_INLINE void graph::prepare(std::string_view input, preprocessing from) {
  preprocessed_.insert_or_assign(std::string(input), std::move(from));
}

EDL_INLINE std::string graph::tensor_of_ids(std::string_view name, std::vector<std::int64_t> ids) {
  auto const all = std::make_shared<std::vector<std::int64_t> const>(std::move(ids));
  return store({.name = path_ + std::string(name),
                .dims = {std::int64_t(all->size())},
                .ids = true,
                .each = [all](auto const& to) { to(std::as_bytes(std::span(*all))); }});
}

EDL_INLINE value graph::prepared(std::string const& name, preprocessing const& p, shape of, form as) {
  auto const outer = std::exchange(path_, "preprocessing/" + name + '/');
  std::vector<value> from;
  for (record_values const& r : p.from) {
    if (auto const known = record_.find(r.name); known != record_.end()) {
      from.push_back(known->second);
      continue;
    }
    from.push_back(record_.emplace(r.name, declare(detail::declared(r))).first->second);
  }
  std::vector<std::int64_t> in_order(of.size());
  std::iota(in_order.begin(), in_order.end(), std::int64_t(0));
  value x;
  if (from.size() == 1 && from[0].extents.size() == of.size() && p.places == in_order) {
    x = as_sample(from[0], of, as);
  } else {
    std::vector<std::string> rows;
    rows.reserve(from.size());
    for (value const& v : from) rows.push_back(this->as(v, form::rows).name);
    std::string all = rows.size() == 1 ? rows[0] : add("Concat", rows, {{"axis", std::int64_t(1)}});
    std::size_t count = 0;
    for (value const& v : from) count += v.extents.size();
    if (count != of.size() || p.places != in_order)
      all = add("Gather", {all, tensor_of_ids("places", p.places)}, {{"axis", std::int64_t(1)}});
    x = as_sample({.name = all, .extents = {1, 1, int(of.size())}}, of, as);
  }
  auto const all = [](std::vector<float> const& v, float same) {
    return std::ranges::all_of(v, [&](float f) { return f == same; });
  };
  if (!all(p.factors, 1)) x.name = add("Mul", {x.name, detail::spread(*this, "factors", p.factors, of, as)});
  if (!all(p.offsets, 0)) x.name = add("Add", {x.name, detail::spread(*this, "offsets", p.offsets, of, as)});
  path_ = outer;
  return x;
}

}  // namespace edl::onnx
