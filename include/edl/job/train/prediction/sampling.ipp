// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/prediction/sampling.hpp"

namespace edl {

EDL_INLINE void sampling_options::check() const {
  auto const need = [](bool good, char const* name, auto value, char const* range) {
    if (!good) throw usage_error(fmt::format("{}={} is out of range: it is {}", name, value, range));
  };
  need(temperature >= 0 && temperature <= 100, "temperature", temperature, "from 0 to 100");
  need(top_k >= 0, "top_k", top_k, "0, for all, or more");
  need(top_p > 0 && top_p <= 1, "top_p", top_p, "above 0, at most 1");
  need(min_p >= 0 && min_p <= 1, "min_p", min_p, "from 0 to 1");
  need(repetition_penalty >= 0.01f && repetition_penalty <= 100, "repetition_penalty", repetition_penalty,
       "from 0.01 to 100");
}

namespace train {

EDL_INLINE std::int32_t sampler::operator()(view<float> numbers, std::span<std::int32_t const> earlier,
                                            sampling_options const& by, float draw) {
  invariant(!numbers.empty() && draw >= 0 && draw < 1, "one of several ids is drawn by a number below 1");
  seen_.assign(by.repetition_penalty != 1 ? numbers.size() : 0, false);
  for (std::int32_t const id : earlier)
    if (std::size_t(id) < seen_.size()) seen_[std::size_t(id)] = true;
  all_.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    float x = numbers[i];
    if (!std::isfinite(x))
      throw error(
          fmt::format("the model gives {} for id {}: its variables or its training are at fault", x, i));
    if (!seen_.empty() && seen_[i]) x = x > 0 ? x / by.repetition_penalty : x * by.repetition_penalty;
    all_[i] = {x, std::int32_t(i)};
  }
  auto const likelier = [](candidate const& a, candidate const& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  };
  if (by.temperature == 0) return std::ranges::min_element(all_, likelier)->id;
  if (by.top_k > 0 && std::size_t(by.top_k) < all_.size()) {
    std::nth_element(all_.begin(), all_.begin() + by.top_k, all_.end(), likelier);
    all_.resize(std::size_t(by.top_k));
  }
  if (by.top_p < 1) std::ranges::sort(all_, likelier);
  float const most = std::ranges::min_element(all_, likelier)->weight;
  double sum = 0;
  for (candidate& c : all_) sum += c.weight = std::exp((c.weight - most) / by.temperature);
  if (by.top_p < 1) {
    double const wanted = by.top_p * sum;
    std::size_t kept = 0;
    for (sum = 0; kept < all_.size() && sum < wanted; ++kept) sum += all_[kept].weight;
    all_.resize(std::max<std::size_t>(kept, 1));
  }
  if (by.min_p > 0) {
    std::erase_if(all_, [&](candidate const& c) { return c.weight < by.min_p; });
    sum = 0;
    for (candidate const& c : all_) sum += c.weight;
  }
  invariant(!all_.empty() && sum > 0, "the likeliest id is never left out");
  double left = double(draw) * sum;
  for (candidate const& c : all_)
    if ((left -= c.weight) < 0) return c.id;
  return std::ranges::max_element(all_, {}, &candidate::weight)->id;  // rounding, at the end of the sum
}

}  // namespace train
}  // namespace edl
