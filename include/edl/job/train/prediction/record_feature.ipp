// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <exception>
#include <numeric>
#include <string_view>

#include "edl/compute/data/format/example_builder.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/record_feature.hpp"

namespace edl {
namespace detail {

inline std::size_t count_of(record_feature const& f) {
  return std::accumulate(f.extents.begin(), f.extents.end(), std::size_t(1), std::multiplies<>());
}

inline void build(example& record, std::vector<record_feature> const& features) {
  example_builder to(record);
  for (record_feature const& f : features) {
    std::size_t const n = count_of(f);
    if (f.kind == example::kind::strings)
      to.bytes(f.name, std::vector<std::string_view>(n));
    else if (f.kind == example::kind::integers)
      std::ranges::fill(to.integers(f.name, n), 0);
    else
      std::ranges::fill(to.floats(f.name, n), 0.0f);
  }
}

}  // namespace detail

EDL_INLINE std::vector<record_feature> features_read_by(
    std::function<void(example const& record)> const& feed, std::size_t values) {
  constexpr int most_tries = 2000;
  constexpr std::size_t most_values = std::size_t(1) << 24;
  std::vector<record_feature> all;
  example record;
  bool open = false;     // whether as many values as the last one has is a guess
  bool guessed = false;  // the last one has as many as the network, and nobody has said so
  for (int i = 0; i < most_tries; ++i) {
    detail::build(record, all);
    try {
      feed(record);
      return all;
    } catch (feature_error const& e) {
      auto at = std::ranges::find(all, e.feature, &record_feature::name);
      if (at == all.end()) {
        all.push_back({e.feature, e.kind, e.extents});
        open = e.kind == example::kind::floats && e.extents.empty() && !e.one;
        continue;
      }
      record_feature const before = *at;
      if (e.kind != example::kind::none) at->kind = e.kind;
      if (!e.extents.empty() || e.one) at->extents = e.extents;
      if (at->kind == before.kind && at->extents == before.extents) return all;
      if (detail::count_of(*at) > most_values || detail::count_of(*at) == 0) {
        *at = before;
        return all;
      }
      open = false;
    } catch (std::exception const& e) {
      auto const* const count = dynamic_cast<count_error const*>(&e);
      std::size_t const wanted = count ? count->wanted : values;
      if (!open || wanted <= 1 || wanted > most_values) {
        if (guessed) all.back().extents.clear();
        return all;
      }
      all.back().extents = {wanted};
      open = false, guessed = true;
      continue;
    }
    guessed = false;
  }
  return all;
}

}  // namespace edl
