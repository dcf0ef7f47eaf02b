// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/core/bfloat16.hpp"
#include "edl/core/span.hpp"

/// Numbers to send: `Wire` is float, or the 16 bits of a bfloat16.
namespace edl::collective {

template <class Wire>
inline constexpr bool is_bfloat16 = !std::is_same_v<Wire, float>;

/// A number after it has been sent.
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

/// Adds terms, from element `at` on, one after the other to the received sum, or to nothing (null). Every
/// term and every sum is rounded as if it had been sent. `to` may be a part of the first term.
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
