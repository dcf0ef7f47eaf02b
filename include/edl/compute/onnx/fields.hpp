// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/input_file.hpp"

namespace edl::onnx {

/// The longest name or note that is read; longer ones are skipped.
inline constexpr std::size_t longest_note = 1u << 16;

namespace detail {

/// Reads a file byte by byte through a buffer.
class window {
 public:
  explicit window(input_file const& file) : file_(file) {}

  std::byte at(std::uint64_t place);
  input_file const& file() const { return file_; }

 private:
  input_file const& file_;
  std::uint64_t first_ = 0;
  std::vector<std::byte> bytes_;
};

/// The fields of a message of Protocol Buffers, within [at, end) of a file. Anything else is an edl::error
/// that names the file and the offset.
class fields {
 public:
  struct field {
    std::uint32_t number = 0, type = 0;
    std::uint64_t value = 0;         // of type 0
    std::uint64_t at = 0, size = 0;  // of type 2
  };

  fields(window& bytes, std::uint64_t at, std::uint64_t end) : window_(bytes), at_(at), end_(end) {}

  bool more() const { return at_ < end_; }
  std::uint64_t varint();
  field next();

  /// The next byte; the next 4 bytes, or the value of a field of type 5.
  std::byte byte();
  std::uint32_t fixed32();
  std::uint32_t fixed32(field const& f) { return bits_at(f.at); }

  static constexpr std::uint64_t longest = longest_note;

  std::string text(field const& f);
  fields of(field const& f);
  [[noreturn]] void fail(std::string_view why) const;

 private:
  std::uint32_t bits_at(std::uint64_t place);

  window& window_;
  std::uint64_t at_, end_;
};

}  // namespace detail
}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/fields.ipp"
#endif
