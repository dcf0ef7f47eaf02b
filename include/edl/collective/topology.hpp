// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace edl::collective {

/// The largest power of two that is not larger: how many members of a group take part in the doubling rounds.
constexpr int doubling_size(int size) { return int(std::bit_floor(unsigned(size))); }

/// Who a member exchanges bytes with, in increasing order: its neighbours in the ring, and its partners in
/// the rounds of recursive doubling. O(log size) of them; for every pair both agree.
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
