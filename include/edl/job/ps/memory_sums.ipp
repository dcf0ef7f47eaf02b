// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"
#include "edl/job/ps/memory_sums.hpp"

namespace edl::ps {
namespace detail {

// Fletcher's two sums of words, in lanes that a compiler makes vectors of: they cost much less than a step.
EDL_INLINE std::uint64_t sum_of_words(view<float> block) {
  constexpr std::size_t lanes = 8, floats = 2 * lanes;
  std::array<std::uint64_t, lanes> words{}, once{}, twice{};
  std::size_t at = 0;
  auto const add = [&] {
    for (std::size_t i = 0; i < lanes; ++i) once[i] += words[i], twice[i] += once[i];
  };
  for (; at + floats <= block.size(); at += floats) {
    std::memcpy(words.data(), block.data() + at, sizeof words);
    add();
  }
  words.fill(0);
  if (at < block.size()) std::memcpy(words.data(), block.data() + at, (block.size() - at) * sizeof(float));
  add();
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < lanes; ++i) all = mix(mix(all, once[i]), twice[i]);
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
