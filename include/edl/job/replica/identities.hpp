// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "edl/core/ledger.hpp"
#include "edl/core/span.hpp"

namespace edl::replica::detail {

// Identities of minibatches are sent in sums, as numbers that a sum with zeros does not change: 16 bits in a
// float.
inline constexpr std::size_t words_per_contribution = 7;
inline constexpr std::size_t floats_per_contribution = 1 + 2 * words_per_contribution;

inline void write_identity(contribution const& c, std::span<float> into) {
  std::uint32_t const words[words_per_contribution]{c.key.task.epoch,
                                                    c.key.task.index,
                                                    c.key.index,
                                                    c.key.count,
                                                    c.records,
                                                    c.skipped,
                                                    std::bit_cast<std::uint32_t>(c.rate)};
  into[0] = 1;
  for (std::size_t i = 0; i < words_per_contribution; ++i) {
    into[1 + 2 * i] = float(words[i] & 0xffff);
    into[2 + 2 * i] = float(words[i] >> 16);
  }
}

inline std::optional<contribution> read_identity(view<float> from) {
  if (from[0] != 1) return std::nullopt;
  std::uint32_t words[words_per_contribution];
  for (std::size_t i = 0; i < words_per_contribution; ++i)
    words[i] = std::uint32_t(from[1 + 2 * i]) | std::uint32_t(from[2 + 2 * i]) << 16;
  return contribution{
      {{words[0], words[1]}, words[2], words[3]}, words[4], words[5], std::bit_cast<float>(words[6])};
}

}  // namespace edl::replica::detail
