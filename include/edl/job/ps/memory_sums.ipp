// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"
#include "edl/job/ps/memory_sums.hpp"

namespace edl::ps {
namespace detail {

typedef std::uint64_t word_lanes __attribute__((vector_size(32)));

// Fletcher's two sums of words, in vector lanes. Two independent streams hide the latency of additions.
EDL_INLINE std::uint64_t sum_of_words(view<float> block) {
  constexpr std::size_t floats = sizeof(word_lanes) / sizeof(float);
  word_lanes words[2]{}, once[2]{}, twice[2]{};
  std::size_t at = 0;
  for (; at + 2 * floats <= block.size(); at += 2 * floats) {
    std::memcpy(&words[0], block.data() + at, sizeof(word_lanes));
    std::memcpy(&words[1], block.data() + at + floats, sizeof(word_lanes));
    once[0] += words[0], once[1] += words[1];
    twice[0] += once[0], twice[1] += once[1];
  }
  word_lanes rest[2]{};
  if (at < block.size()) std::memcpy(rest, block.data() + at, (block.size() - at) * sizeof(float));
  std::uint64_t all = 0;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; i < sizeof(word_lanes) / sizeof(std::uint64_t); ++i)
      all = mix(mix(mix(all, once[s][i]), twice[s][i]), rest[s][i]);
  return all;
}

EDL_INLINE std::uint64_t sum_of_block(std::span<view<float> const> arrays, std::size_t number) {
  std::uint64_t all = 0;
  for (view<float> const a : arrays) {
    std::size_t const first = std::min(number * memory_sums::block, a.size());
    all = mix(all, sum_of_words(a.subspan(first, std::min(memory_sums::block, a.size() - first))));
  }
  return all;
}

}  // namespace detail

EDL_INLINE void memory_sums::take(std::span<view<float> const> arrays, element_range of) {
  for (std::size_t b = of.first / block; b * block < of.last; ++b) sums_[b] = detail::sum_of_block(arrays, b);
}

EDL_INLINE std::optional<element_range> memory_sums::changed(std::span<view<float> const> arrays,
                                                             element_range of) const {
  for (std::size_t b = of.first / block; b * block < of.last; ++b)
    if (sums_[b] != detail::sum_of_block(arrays, b))
      return element_range{b * block, std::min((b + 1) * block, arrays.front().size())};
  return std::nullopt;
}

}  // namespace edl::ps
