// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace edl::onnx {

/// A message in the wire format of Protocol Buffers, written field by field. ONNX needs so few fields that
/// this is less code than generated classes, and tensors are not copied into it.
class message {
 public:
  message& number(std::uint32_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  message& real(std::uint32_t field, float value) {
    varint(field << 3 | 5);
    append(&value, sizeof value);
    return *this;
  }
  message& text(std::uint32_t field, std::string_view value) {
    begin(field, value.size());
    bytes_ += value;
    return *this;
  }
  message& packed(std::uint32_t field, std::span<std::int64_t const> values) {
    message all;
    for (std::int64_t const v : values) all.varint(std::uint64_t(v));
    return text(field, all.bytes_);
  }
  message& packed(std::uint32_t field, std::span<float const> values) {
    begin(field, values.size_bytes());
    append(values.data(), values.size_bytes());
    return *this;
  }
  /// Begins a field whose `size` bytes come from elsewhere.
  message& begin(std::uint32_t field, std::uint64_t size) {
    varint(field << 3 | 2);
    varint(size);
    return *this;
  }
  std::string const& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += char(value | 128);
    bytes_ += char(value);
  }
  void append(void const* from, std::size_t size) { bytes_.append(static_cast<char const*>(from), size); }

  std::string bytes_;
};

}  // namespace edl::onnx
