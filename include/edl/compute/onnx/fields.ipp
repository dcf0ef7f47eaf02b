// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "edl/compute/onnx/fields.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx::detail {

EDL_INLINE std::byte window::at(std::uint64_t place) {
  if (place < first_ || place - first_ >= bytes_.size()) {
    bytes_.resize(std::size_t(std::min<std::uint64_t>(1u << 16, file_.size() - place)));
    file_.read(first_ = place, bytes_);
  }
  return bytes_[std::size_t(place - first_)];
}

EDL_INLINE std::uint64_t fields::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == end_) fail("it is cut off");
    auto const byte = std::uint64_t(window_.at(at_++));
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  fail("a number is too long");
}

EDL_INLINE fields::field fields::next() {
  std::uint64_t const tag = varint();
  field f{.number = std::uint32_t(tag >> 3), .type = std::uint32_t(tag & 7)};
  if (f.number == 0 || tag >> 3 > 0x1fff'ffff) fail("it has a field that Protocol Buffers do not have");
  if (f.type == 0) {
    f.value = varint();
    return f;
  }
  if (f.type != 1 && f.type != 2 && f.type != 5) fail("it has a field that Protocol Buffers do not have");
  f.size = f.type == 2 ? varint() : f.type == 1 ? 8 : 4;
  f.at = at_;
  if (f.size > end_ - at_) fail("it is cut off");
  at_ += f.size;
  return f;
}

EDL_INLINE std::byte fields::byte() {
  if (at_ == end_) fail("it is cut off");
  return window_.at(at_++);
}

EDL_INLINE std::uint32_t fields::fixed32() {
  if (end_ - at_ < 4) fail("it is cut off");
  at_ += 4;
  return bits_at(at_ - 4);
}

EDL_INLINE std::string fields::text(field const& f) {
  if (f.type != 2 || f.size > longest) fail("a text is none, or is too long");
  std::string all(std::size_t(f.size), '\0');
  window_.file().read(f.at, std::as_writable_bytes(std::span(all)));
  return all;
}

EDL_INLINE fields fields::of(field const& f) {
  if (f.type != 2) fail("a message is none");
  return {window_, f.at, f.at + f.size};
}

EDL_INLINE void fields::fail(std::string_view why) const {
  throw error(
      fmt::format("cannot read {} as a model of ONNX: {} at byte {}", window_.file().path(), why, at_));
}

EDL_INLINE std::uint32_t fields::bits_at(std::uint64_t place) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= std::uint32_t(window_.at(place + std::uint64_t(i))) << 8 * i;
  return bits;
}

}  // namespace edl::onnx::detail
