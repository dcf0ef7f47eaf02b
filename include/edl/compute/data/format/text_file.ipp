// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/text_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

EDL_INLINE std::string_view without_packing(std::string_view name) {
  for (std::string_view const ending : {".gz", ".zst"})
    if (ends_as(name, ending)) return name.substr(0, name.size() - ending.size());
  return name;
}

EDL_INLINE text_file::text_file(std::string const& path)
    : file_(path), packed_(without_packing(path).size() < path.size()) {
  if (packed_) unpack();
  char mark[2] = {};
  if (size() >= sizeof mark) read(0, mark, sizeof mark);
  if (std::string_view const first(mark, sizeof mark); first == "\xFF\xFE" || first == "\xFE\xFF")
    throw data_error(fmt::format("{0}: is in UTF-16; save it as UTF-8: iconv -f UTF-16 -t UTF-8 {0}", path));
}

EDL_INLINE void text_file::unpack() {
  auto const& path = file_.path();
  auto const packed = read_all(path, most_unpacked);
  try {
    if (ends_as(path, ".gz"))
      unpack_gzip(packed, most_unpacked, unpacked_);
    else
      unpack_zstd(packed, most_unpacked, unpacked_);
  } catch (data_error const& e) {
    throw data_error(fmt::format(
        "{}: {}{}", path, e.what(),
        std::string_view(e.what()).starts_with("unpacks to more") ? "; unpack the file before" : ""));
  }
  unpacked_.shrink_to_fit();
}

EDL_INLINE void text_file::read(std::uint64_t offset, void* into, std::size_t count) const {
  if (!packed_) return file_.read(offset, into, count);
  if (offset > unpacked_.size() || count > unpacked_.size() - offset)
    throw data_error(fmt::format("{}: ends at byte {} unpacked", path(), unpacked_.size()));
  std::memcpy(into, unpacked_.data() + offset, count);
}

}  // namespace edl::data::detail
