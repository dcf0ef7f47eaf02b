// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "edl/core/storage_error.hpp"

namespace edl {

/// A file opened for reading at any offset, which it never modifies. Thread safety: safe.
class input_file {
 public:
  explicit input_file(std::string path);
  ~input_file();
  input_file(input_file&& other) noexcept;
  input_file& operator=(input_file&&) = delete;

  std::string const& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Reads bytes [offset, offset + into.size()). Throws edl::error if the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

  /// zlib's CRC-32 of the whole file.
  std::uint32_t crc32() const;

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/input_file.ipp"
#endif
