// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/compute/data/file.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// Unpacked bytes of one packed text; what is longer is to be unpacked before.
inline constexpr std::uint64_t most_unpacked = 1ull << 30;

/// A file of text that is read by offset, where it lies. One whose name ends in `.gz` or `.zst`, in any case,
/// is unpacked into memory instead, and may have 1 GiB then. Thread safety: safe, once open.
class text_file {
 public:
  /// A data_error names the file if it cannot be unpacked, or not into so much memory, or is in UTF-16.
  explicit text_file(std::string const& path);

  std::string const& path() const { return file_.path(); }
  std::uint64_t size() const { return packed_ ? unpacked_.size() : file_.size(); }

  /// Exactly `count` bytes.
  void read(std::uint64_t offset, void* into, std::size_t count) const;

  /// A data_error if the file was changed since it was opened.
  void check_unchanged() const { file_.check_unchanged(); }

  /// Of the file as it lies, packed or not.
  std::uint64_t digest() const { return digest_of(file_); }

 private:
  void unpack();

  input_file file_;
  bool packed_ = false;
  std::string unpacked_;
};

/// A file's name without the ending of a packed one.
std::string_view without_packing(std::string_view name);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/text_file.ipp"
#endif
