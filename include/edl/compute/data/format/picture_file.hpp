// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/inline.hpp"
#include "edl/core/shape.hpp"

namespace edl::data {

/// A picture as files have it: rows from the top, values from 0 to 255, the channels of a place side by side.
struct pixels {
  shape extents;
  std::vector<std::uint8_t> values;  ///< extents.size() of them
};

/// A file with more places than this, or a side of more than 65,535, is refused before its pixels get memory.
inline constexpr std::size_t most_places = 1u << 25;

/// Whether a file's name ends as those of pictures do, in any case: .png, .jpg, .jpeg, .jpe, .jfif or .webp.
bool names_picture(std::string_view name);

/// Decodes a PNG, JPEG or WebP file, whatever its name is. The result has 1 channel if the file is grey, and
/// 3 (red, green, blue) otherwise. Transparency is left out, 16 bits become 8, palettes become colours.
/// Neither gamma nor colour profiles nor the orientation of EXIF are applied. A data_error, without the
/// file's name, if the file is of another format or damaged, ends too early, moves, or has colours for
/// printing (CMYK). Storage is kept. Thread safety: distinct objects: safe. Shared objects: unsafe.
void decode_picture(std::string_view file, pixels& into);

/// A PNG file of a picture with 1 or 3 channels; a usage_error for others.
std::string encode_png(pixels const& of);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/picture_file.ipp"
#endif
