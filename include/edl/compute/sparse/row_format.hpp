// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "edl/compute/nn/row_policy.hpp"
#include "edl/compute/sparse/row_memory.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/random.hpp"
#include "edl/core/span.hpp"

namespace edl::sparse {

/// The layout of a row's values after its header: weights, as float32 or bfloat16, then the optimiser's slots
/// as float32. Thread safety: safe; the caller owns the rows.
class row_format {
 public:
  row_format(std::size_t width, std::size_t slots, nn::row_values weights, bool watched = false)
      : width_(width),
        slots_(slots),
        rounded_(weights == nn::row_values::bfloat16),
        watched_(watched),
        weight_floats_(rounded_ ? (width + 1) / 2 : width) {}

  std::size_t values() const { return width_ * (1 + slots_); }              ///< weights, then each slot
  std::size_t payload() const { return weight_floats_ + width_ * slots_; }  ///< their size in floats
  std::size_t memory() const { return payload() + watched_; }               ///< with the checksum
  std::size_t weight_bytes() const { return weight_floats_ * sizeof(float); }

  float* slot(row r, std::size_t number) const { return r.values() + weight_floats_ + number * width_; }

  void read_weights(row r, float* to) const {
    if (!rounded_) {
      std::memcpy(to, r.values(), width_ * sizeof(float));
      return;
    }
    std::uint16_t const* const from = bits(r);
    for (std::size_t i = 0; i < width_; ++i) to[i] = from_bfloat16(from[i]);
  }

  /// Rounds to the nearest.
  void write_weights(row r, float const* from) const {
    if (!rounded_) {
      std::memcpy(r.values(), from, width_ * sizeof(float));
      return;
    }
    std::uint16_t* const to = bits(r);
    for (std::size_t i = 0; i < width_; ++i) to[i] = to_bfloat16(from[i]);
  }

  /// Stochastic rounding, which keeps the mean unbiased. Equal rows, seeds and values give equal bits.
  void write_weights_by_chance(row r, float const* from, std::uint64_t seed) const {
    if (!rounded_) return write_weights(r, from);
    std::uint16_t* const to = bits(r);
    std::uint64_t const start = mix(mix(seed, r.header->id), r.header->uses);
    std::uint64_t chance = 0;
    for (std::size_t i = 0; i < width_; ++i) {
      chance = i % 4 == 0 ? mix(start, i) : chance >> 16;
      to[i] = rounded_by(from[i], std::uint16_t(chance));
    }
  }

  void read(row r, std::span<float> to) const {
    read_weights(r, to.data());
    std::copy_n(slot(r, 0), width_ * slots_, to.data() + width_);
  }
  /// The row's values in place, or unpacked into `room` if they are packed.
  view<float> look(row r, std::span<float> room) const {
    if (!rounded_) return {r.values(), values()};
    read(r, room);
    return room;
  }
  void write(row r, view<float> from) const {
    write_weights(r, from.data());
    std::copy_n(from.data() + width_, width_ * slots_, slot(r, 0));
  }

  /// Stores the checksum of the row's current values, if the table watches its memory.
  void note(row r) const {
    if (!watched_) return;
    std::uint32_t const sum = sum_of(r);
    std::memcpy(r.values() + payload(), &sum, sizeof sum);
  }
  /// Whether the values match the stored checksum.
  bool intact(row r) const {
    std::uint32_t sum = 0;
    if (watched_) std::memcpy(&sum, r.values() + payload(), sizeof sum);
    return !watched_ || sum == sum_of(r);
  }

 private:
  std::uint32_t sum_of(row r) const {
    std::uint64_t const all = digest(view<float>(r.values(), payload()), r.header->id);
    return std::uint32_t(all ^ all >> 32);
  }
  static std::uint16_t* bits(row r) { return reinterpret_cast<std::uint16_t*>(r.values()); }

  static std::uint16_t rounded_by(float x, std::uint16_t chance) {
    auto const bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7f80'0000) == 0x7f80'0000) return to_bfloat16(x);  // infinite, or no number
    return std::uint16_t((bits + chance) >> 16);
  }

  std::size_t width_, slots_;
  bool rounded_, watched_;
  std::size_t weight_floats_;
};

}  // namespace edl::sparse
