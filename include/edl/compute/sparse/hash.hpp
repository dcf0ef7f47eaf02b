// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "edl/core/random.hpp"

namespace edl::sparse {

/// The number of hash slots of a table: the unit in which servers divide its rows.
inline constexpr std::uint32_t hash_slots = 4096;

/// The hash of an id, the same in every process. It gives the hash slot of the id's row, the position within
/// that slot, and eight bits that distinguish the id from most of its neighbours.
class id_hash {
 public:
  constexpr explicit id_hash(std::uint64_t id) : bits_(mix(0, id)) {}

  constexpr std::uint32_t slot() const { return std::uint32_t(bits_ >> 52); }
  /// From 0 to n − 1.
  constexpr std::uint32_t place(std::uint32_t n) const {
    return std::uint32_t((std::uint64_t{std::uint32_t(bits_ >> 20)} * n) >> 32);
  }
  /// Never 0.
  constexpr std::uint8_t tag() const { return std::uint8_t(bits_ % 255 + 1); }

 private:
  std::uint64_t bits_;
};

}  // namespace edl::sparse
