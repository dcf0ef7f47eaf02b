// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "edl/core/inline.hpp"
#include "edl/job/worker/clip.hpp"

namespace edl::worker {
namespace detail {

/// Sums in independent lanes that are added at the end: the loop vectorises, and its order of additions is
/// the same on every machine.
inline double sum_of_squares(std::span<float const> of) {
  constexpr std::size_t lanes = 16;
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= of.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) sums[k] += double(of[i + k]) * double(of[i + k]);
  double all = 0;
  for (; i < of.size(); ++i) all += double(of[i]) * double(of[i]);
  for (double const s : sums) all += s;
  return all;
}

}  // namespace detail

EDL_INLINE void clip(clipping const& how, std::span<std::span<float> const> gradient) {
  if (how.value > 0)
    for (std::span<float> const part : gradient)
      for (float& g : part)
        if (std::abs(g) > how.value && std::isfinite(g)) g = std::copysign(how.value, g);
  if (how.norm <= 0) return;
  double squares = 0;
  for (std::span<float> const part : gradient) squares += detail::sum_of_squares(part);
  double const norm = std::sqrt(squares);
  if (!std::isfinite(norm) || norm <= double(how.norm)) return;
  auto const scale = float(double(how.norm) / norm);
  for (std::span<float> const part : gradient)
    for (float& g : part) g *= scale;
}

}  // namespace edl::worker
