// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <exception>
#include <numeric>
#include <string_view>

#include "edl/compute/data/format/asked_features.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/record_feature.hpp"

namespace edl {
namespace detail {

inline constexpr std::size_t most_values = std::size_t(1) << 24;

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

/// Features without which `feed` is content, or fails for another reason.
inline std::vector<record_feature> needed_by(std::function<void(example const& record)> const& feed,
                                             std::size_t values) {
  constexpr int most_tries = 2000;
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

/// What `feed` takes of a feature that it does without: a number where it does not say.
inline record_feature taken_by(std::function<void(example const& record)> const& feed,
                               std::vector<record_feature> others, std::string const& name) {
  example record;
  others.push_back({name, example::kind::floats, {}});
  record_feature& one = others.back();
  for (int i = 0; i < 3; ++i) try {  // its kind, then its extents
      build(record, others);
      feed(record);
      break;
    } catch (feature_error const& e) {
      if (e.feature != name) break;
      record_feature const before = one;
      if (e.kind != example::kind::none) one.kind = e.kind;
      one.extents = e.extents;
      if (count_of(one) <= most_values && count_of(one) > 0) continue;
      one = before;
      break;
    } catch (std::exception const&) {
      break;
    }
  return one;
}

}  // namespace detail

EDL_INLINE std::vector<record_feature> features_read_by(
    std::function<void(example const& record)> const& feed, std::size_t values) {
  auto all = detail::needed_by(feed, values);
  asked_features asked;
  example record;
  detail::build(record, all);
  try {
    feed(record);
  } catch (std::exception const&) {
  }
  auto const needed = all;
  for (std::string const& name : std::set(asked.names))
    if (std::ranges::find(needed, name, &record_feature::name) == needed.end())
      all.push_back(detail::taken_by(feed, needed, name));
  return all;
}

}  // namespace edl
