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

// The value in a row until `feed` writes there: a NaN that no computation produces.
inline constexpr float unfed = std::bit_cast<float>(0x7FC5'0ED1u);
inline constexpr std::uint64_t unfed_id = 0xB5A4'1D37'9C0E'F862u;
inline constexpr std::int32_t unfed_class = std::numeric_limits<std::int32_t>::min();

constexpr bool is_unfed(float value) {
  return std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(unfed);
}

/// The value for ids before `feed`, so that ids that were not set can be detected. Every number is a valid
/// id: if an id looks unfed, this returns a number that is not an id of the record, and the record is fed
/// again over it. Otherwise it returns `unfed_id`.
std::uint64_t poison_for(std::span<nn::input_place const> inputs, view<std::uint64_t> ids);

/// Checks the sample that `feed` made from a record, before it is used. Throws data_error, which names the
/// input, if a value was not set: the record may be too short. Also, with feature and value, if one is not a
/// finite number. `poison` is the value that the ids had before `feed`.
void check_inputs(example const& record, std::span<nn::input_place const> inputs, view<float> row,
                  view<std::uint64_t> ids, std::uint64_t poison = unfed_id);

/// Rethrows the current exception of an author's `feed` as the record's own data_error. Lack of memory and a
/// failing disk are not the record's fault, and are rethrown unchanged.
[[noreturn]] void refuse_record();

/// Calls an author's `feed`; use nothing else to call it. Every exception becomes the record's own error.
template <class Feed>
void call_feed(Feed&& feed) {
  try {
    feed();
  } catch (...) {
    refuse_record();
  }
}

/// Throws data_error: `feed` did not set the label, or this one of several. The record may lack it.
[[noreturn]] void refuse_unfed_label(std::string_view which);

/// Throws data_error: `feed` set no label at any place of a record. The record may lack them.
[[noreturn]] void refuse_unfed_places();

/// Throws error: `feed` does not use an input.
[[noreturn]] void refuse_unused_input(std::string_view name);

}  // namespace author
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/author/fed.ipp"
#endif
