// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// A regular file that is read by offset. Not mapped: a file that shrinks must be an error, not a signal.
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

  /// Exactly `count` bytes; a data_error if the file has shrunk.
  void read(std::uint64_t offset, void* into, std::size_t count) const;

  /// A data_error if the size or the time of change is no longer what it was when the file was opened.
  void check_unchanged() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t changed_ = 0;  // ns
};

/// A file that appears under its name when it is complete. Thread safety: distinct objects: safe.
class output_file {
 public:
  explicit output_file(std::string path);
  output_file(output_file const&) = delete;
  output_file& operator=(output_file const&) = delete;
  ~output_file();

  std::string const& path() const { return path_; }
  void write(std::string_view bytes);

  /// Brings everything to the disk and renames.
  void close();

 private:
  std::string path_, partial_;
  int descriptor_ = -1;
};

/// All of a file, which may not be larger than `limit`.
std::string read_all(std::string const& path, std::uint64_t limit);

/// "No such file or directory" for errno's value.
std::string reason(int error_number);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/data/file.ipp"
#endif
