// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/core/bfloat16.hpp"
#include "edl/core/span.hpp"

/// Numbers that travel: as `Wire`, a float as it is, or the 16 bits of a bfloat16.
namespace edl::collective {

template <class Wire>
inline constexpr bool is_bfloat16 = !std::is_same_v<Wire, float>;

/// A number as it is after it has travelled.
template <class Wire>
constexpr float travelled(float x) {
  if constexpr (is_bfloat16<Wire>)
    return from_bfloat16(to_bfloat16(x));
  else
    return x;
}

template <class Wire>
constexpr float read(Wire x) {
  if constexpr (is_bfloat16<Wire>)
    return from_bfloat16(x);
  else
    return x;
}

template <class Wire>
void write_out(view<float> from, Wire* to) {
  if constexpr (is_bfloat16<Wire>)
    std::transform(from.begin(), from.end(), to, to_bfloat16);
  else
    std::copy(from.begin(), from.end(), to);
}

template <class Wire>
void read_in(Wire const* from, std::span<float> to) {
  if constexpr (is_bfloat16<Wire>)
    std::transform(from, from + to.size(), to.begin(), from_bfloat16);
  else
    std::copy_n(from, to.size(), to.begin());
}

template <class Wire>
void add(Wire const* from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += read(from[i]);
}

/// Adds terms, from element `at` on, one after the other to what has come, or to nothing (null). Every term
/// and every sum is taken as it is when it has travelled. `to` may be a part of the first term.
template <class Wire>
void fold(Wire const* from, std::span<view<float> const> terms, std::size_t at, std::span<float> to) {
  if (from && terms.empty()) return read_in(from, to);
  for (std::size_t k = 0; k < terms.size(); ++k) {
    auto const term = terms[k].subspan(at, to.size());
    if (k > 0)
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = travelled<Wire>(to[i] + travelled<Wire>(term[i]));
    else if (from)
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = travelled<Wire>(read(from[i]) + travelled<Wire>(term[i]));
    else
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = travelled<Wire>(term[i]);
  }
}

}  // namespace edl::collective
