// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/compute/data/file.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

/// Largest unpacked size of one compressed text; users must unpack longer ones first.
inline constexpr std::uint64_t most_unpacked = 1ull << 30;

/// A text file, read in place by offset. A file whose name ends in `.gz` or `.zst`, in any case, is unpacked
/// into memory instead, up to 1 GiB. Thread safety: safe, once open.
class text_file {
 public:
  /// Throws data_error, which names the file, if it cannot be unpacked, is larger than the limit, or is
  /// UTF-16.
  explicit text_file(std::string const& path);

  std::string const& path() const { return file_.path(); }
  std::uint64_t size() const { return packed_ ? unpacked_.size() : file_.size(); }

  /// Exactly `count` bytes.
  void read(std::uint64_t offset, void* into, std::size_t count) const;

  /// Throws data_error if the file changed since it was opened.
  void check_unchanged() const { file_.check_unchanged(); }

  /// The digest of the file itself, compressed or not.
  std::uint64_t digest() const { return digest_of(file_); }

 private:
  void unpack();

  input_file file_;
  bool packed_ = false;
  std::string unpacked_;
};

/// A file's name without the ending of a compressed one.
std::string_view without_packing(std::string_view name);

}  // namespace edl::data::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/text_file.ipp"
#endif
