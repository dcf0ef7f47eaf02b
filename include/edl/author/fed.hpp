// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "edl/compute/nn/input_place.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/span.hpp"

namespace edl {

class example;

namespace author {

// What stands in a row until `feed` writes there. The NaN is one that no computation makes.
inline constexpr float unfed = std::bit_cast<float>(0x7FC5'0ED1u);
inline constexpr std::uint64_t unfed_id = 0xB5A4'1D37'9C0E'F862u;
inline constexpr std::int32_t unfed_class = std::numeric_limits<std::int32_t>::min();

constexpr bool is_unfed(float value) {
  return std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(unfed);
}

/// What is to stand where ids are to be, so that those which were not set can be told. Any number is an id:
/// where one looks unfed, it is a number that no id of the record is, over which the record is fed again.
/// Otherwise `unfed_id`.
std::uint64_t poison_for(std::span<nn::input_place const> inputs, view<std::uint64_t> ids);

/// Looks at what `feed` made of a record, before it is used. Throws data_error, which names the input, where
/// a value was not set: the record may be too short. Likewise, with feature and value, where one is no finite
/// number. `poison` is what stood where ids are to be.
void check_inputs(example const& record, std::span<nn::input_place const> inputs, view<float> row,
                  view<std::uint64_t> ids, std::uint64_t poison = unfed_id);

/// Throws what an author's `feed` has thrown, which is caught right now, as the record's own data_error. A
/// lack of memory and a disk that fails are not the record's, and stay what they are.
[[noreturn]] void refuse_record();

/// Calls an author's `feed`, the only way to do so: whatever it throws is the record's own error.
template <class Feed>
void call_feed(Feed&& feed) {
  try {
    feed();
  } catch (...) {
    refuse_record();
  }
}

/// Throws data_error: `feed` sets no label, or not this one of several. The record may have none.
[[noreturn]] void refuse_unfed_label(std::string_view which);

/// Throws data_error: `feed` sets none of a record's labels, of many places. The record may have none.
[[noreturn]] void refuse_unfed_places();

/// Throws error: `feed` does not use an input.
[[noreturn]] void refuse_unused_input(std::string_view name);

}  // namespace author
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/fed.ipp"
#endif
