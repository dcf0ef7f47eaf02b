// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace edl::collective {

/// The largest power of two up to `size`: the number of members that take part in the doubling rounds.
constexpr int doubling_size(int size) { return int(std::bit_floor(unsigned(size))); }

/// Places in a row.
struct share {
  std::size_t first = 0, count = 0;
};

/// A member's share of `all` consecutive things, divided as evenly as possible. The first members have one
/// more than the last.
constexpr share share_of(std::size_t all, int size, int rank) {
  std::size_t const each = all / std::size_t(size), more = all % std::size_t(size), r = std::size_t(rank);
  return {r * each + (r < more ? r : more), each + (r < more ? 1 : 0)};
}

/// The members that a member exchanges bytes with, in increasing order: its neighbours in the ring, and its
/// partners in the rounds of recursive doubling. There are O(log size); the relation is symmetric.
inline std::vector<int> partners(int rank, int size) {
  std::vector<int> all;
  auto const add = [&](int other) {
    if (other != rank) all.push_back(other);
  };
  if (size < 2) return all;
  add((rank + 1) % size);
  add((rank + size - 1) % size);
  int const half = doubling_size(size);
  if (rank >= half) add(rank - half);
  if (rank < size - half) add(rank + half);
  for (int bit = 1; rank < half && bit < half; bit *= 2) add(rank ^ bit);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace edl::collective
