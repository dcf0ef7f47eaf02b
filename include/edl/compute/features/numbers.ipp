// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "edl/compute/features/numbers.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::features {
namespace detail {

EDL_INLINE void refuse_boundaries() {
  throw usage_error("the boundaries of a discretization are not sorted");
}

// Whether it is one of 0 to `most`, which NaN is not.
EDL_INLINE std::int64_t id_or(double rounded, std::int64_t most, std::int64_t otherwise) {
  return rounded >= 0 && rounded <= double(most) ? std::int64_t(rounded) : otherwise;
}

}  // namespace detail

EDL_INLINE loaded_discretization::loaded_discretization(std::vector<float> boundaries)
    : boundaries_(std::move(boundaries)) {
  if (!std::ranges::is_sorted(boundaries_)) detail::refuse_boundaries();
}

EDL_INLINE std::int64_t log_round::operator()(double x) const {
  return detail::id_or(std::nearbyint(std::log(x) / std::log(base)), std::int64_t(buckets) - 1, otherwise);
}

EDL_INLINE std::int64_t round_identity::operator()(double x) const {
  return detail::id_or(std::nearbyint(x), most, otherwise);
}

template <class T>
  requires std::same_as<T, float> || std::same_as<T, std::int64_t>
EDL_INLINE T to_number(std::string_view text, T otherwise) {
  std::string_view digits = trimmed(text);
  if (digits.empty()) return otherwise;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  auto const number = number_from<T>(digits);
  if (!number)
    throw data_error(fmt::format("'{}' is no {}", printable(text, 64),
                                 std::same_as<T, float> ? "number" : "whole number of 64 bits"));
  return *number;
}

template float to_number<float>(std::string_view, float);
template std::int64_t to_number<std::int64_t>(std::string_view, std::int64_t);

}  // namespace edl::features
