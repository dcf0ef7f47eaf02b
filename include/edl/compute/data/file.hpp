// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// The system cannot read a file now, but perhaps later.
struct unread_error : data_error {
  using data_error::data_error;
};

/// A regular file, read by offset. Not mapped, because a file that shrinks must be an error, not a signal.
/// Thread safety: safe, once open.
class input_file {
 public:
  input_file() = default;
  explicit input_file(std::string path);
  input_file(input_file&& other) noexcept;
  input_file& operator=(input_file&& other) noexcept;
  ~input_file();

  std::string const& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Exactly `count` bytes; an unread_error if the system refuses, a changed_error if the file has shrunk.
  void read(std::uint64_t offset, void* into, std::size_t count) const;

  /// A data_error if the size or the time of change is no longer what it was when the file was opened.
  void check_unchanged() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t changed_ = 0;  // ns
};

/// A 64-bit checksum of contents (two CRC-32s) over the added bytes, never 0.
class content_digest {
 public:
  void add(std::string_view bytes);
  void add(std::uint64_t number) { add({reinterpret_cast<char const*>(&number), sizeof number}); }
  std::uint64_t value() const;

 private:
  std::uint32_t low_ = 0, high_ = 0;
};

/// The digest of a file's size and content. Up to 64 MiB it covers the whole file. For longer files it covers
/// 1,024 blocks of 64 KiB, evenly spread, including the first and the last.
std::uint64_t digest_of(input_file const& file);

/// The content of a file, which must not be larger than `limit`.
std::string read_all(std::string const& path, std::uint64_t limit);

/// "No such file or directory" for errno's value.
std::string reason(int error_number);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/file.ipp"
#endif
