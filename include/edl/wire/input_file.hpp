// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/span.hpp"

namespace edl::wire {

/// A file that exists whole or not at all: it is written beside `path` under a temporary name, `path.tmp-<16
/// hex digits>`, which `commit` forces to the disk and renames. Without `commit` nothing stays behind, but
/// for a temporary after a crash. Errors (edl::error) name the file, the byte and the reason. Thread safety:
/// distinct objects: safe, even on one path, the last commit wins. Shared objects: unsafe.
class durable_file {
 public:
  explicit durable_file(std::string path);
  ~durable_file();
  durable_file(durable_file const&) = delete;
  durable_file& operator=(durable_file const&) = delete;

  void write(bytes data);
  void write(std::string_view text);

  /// Makes what was written be the file `path`, also after the power fails.
  void commit();

  std::uint64_t size() const { return size_; }    ///< bytes written so far
  std::uint32_t crc32() const { return crc32_; }  ///< zlib's, of what was written so far

 private:
  void discard() noexcept;

  std::string path_, temporary_;
  std::uint64_t size_ = 0;
  std::uint32_t crc32_ = 0;
  int fd_ = -1;
};

/// Whether a file's name is that of a temporary left by a crash.
bool is_temporary(std::string_view name);

/// Forces a directory's entries to the disk.
void sync_directory(std::string const& directory);

/// A file opened for reading at any place, which never changes a thing. Thread safety: safe.
class input_file {
 public:
  explicit input_file(std::string path);
  ~input_file();
  input_file(input_file&& other) noexcept;
  input_file& operator=(input_file&&) = delete;

  std::string const& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Bytes [offset, offset + into.size()). A file that ends before is an edl::error.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

  /// zlib's CRC-32 of the whole file.
  std::uint32_t crc32() const;

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/wire/durable_file.ipp"
#endif
