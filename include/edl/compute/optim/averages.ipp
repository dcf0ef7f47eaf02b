// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "edl/compute/optim/averages.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::detail {

template <std::floating_point T>
void look_back(std::span<T> weights, std::span<T> slow, T keep) {
  T* __restrict const w = weights.data();
  T* __restrict const s = slow.data();
  T const rest = 1 - keep;
  for (std::size_t i = 0; i < weights.size(); ++i) w[i] = s[i] = keep * s[i] + rest * w[i];
}

#ifndef EDL_HEADER_ONLY
template void look_back(std::span<float>, std::span<float>, float);
template void look_back(std::span<double>, std::span<double>, double);
#endif

}  // namespace edl::detail

namespace edl {

EDL_INLINE moving_average::moving_average(update_rule const& of, double decay)
    : rule_(of), decay_(decay), others_(of.slots().size()) {
  if (!(decay >= 0 && decay < 1))
    throw error(
        fmt::format("a moving average with a decay of {}: expected at least 0 and less than 1", decay));
}

EDL_INLINE std::vector<std::string> moving_average::slots() const {
  auto all = rule_.slots();
  if (averages()) all.emplace_back(slot_name);
  return all;
}

EDL_INLINE float moving_average::initial(std::size_t slot) const {
  return slot < others_ ? rule_.initial(slot) : 0.0f;
}

EDL_INLINE double moving_average::kept_after(std::uint64_t step) const {
  // (1 − d^t) A_t = d (1 − d^(t−1)) A_(t−1) + (1 − d) w_t
  double const before = std::pow(decay_, double(step));
  return decay_ * (1 - before) / (1 - decay_ * before);
}

EDL_INLINE void moving_average::apply_at(std::size_t first, std::span<float> weights, view<float> gradients,
                                         std::span<std::span<float> const> slots, float learning_rate,
                                         std::uint64_t step) const {
  if (!averages()) return rule_.apply_at(first, weights, gradients, slots, learning_rate, step);
  // Blocks that a cache holds, unless the rule wants whole variables.
  std::array<float, 2048> block{};
  std::vector<float> whole(rule_.borders().empty() ? 0 : weights.size());
  std::span<float> const before = whole.empty() ? std::span<float>(block) : whole;
  std::vector<std::span<float>> own(others_);
  auto const keep = float(kept_after(step));
  for (std::size_t at = 0; at < weights.size(); at += before.size()) {
    std::size_t const n = std::min(before.size(), weights.size() - at);
    auto const now = weights.subspan(at, n), more = slots[others_].subspan(at, n);
    std::ranges::copy(now, before.begin());
    for (std::size_t i = 0; i < others_; ++i) own[i] = slots[i].subspan(at, n);
    rule_.apply_at(first + at, now, gradients.subspan(at, n), own, learning_rate, step);
    for (std::size_t i = 0; i < n; ++i) more[i] = keep * (more[i] + (before[i] - now[i]));
  }
}

}  // namespace edl
