// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <xtensor/xtensor.hpp>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The picture of a record, without a copy: rows from the top, the channels of a pixel side by side. Valid as
/// long as the record.
struct picture {
  shape extents;
  view<float> values;  ///< extents.size() of them
};

/// The picture in a record of a folder of pictures: the floats `name`, and the integers `height` and `width`.
/// Throws data_error if the record has none, or they do not fit together.
picture picture_of(example const& record, std::string_view name = "image");

/// Writes `from` in another size into `into`, which has to.size() elements. An axis that shrinks is averaged
/// over the area of a pixel. An axis that grows is interpolated linearly between pixel centres, and constant
/// beyond the outermost. One channel becomes three by copies. Three become one with the weights of ITU-R
/// BT.601: 0.299, 0.587, 0.114. Throws data_error for other changes of the channels, and usage_error if `to`
/// is empty or `into` has another size. Thread safety: safe.
void resize(picture const& from, shape to, std::span<float> into);

/// The same as a new tensor. // (to.height, to.width, to.channels)
inline xt::xtensor<float, 3> resized(picture const& from, shape to) {
  xt::xtensor<float, 3> into(
      std::array<std::size_t, 3>{std::size_t(to.height), std::size_t(to.width), std::size_t(to.channels)});
  resize(from, to, {into.data(), into.size()});
  return into;
}

}  // namespace edl

namespace edl::data {

/// A decoded picture: rows from the top, values from 0 to 255, the channels of a pixel side by side.
struct pixels {
  shape extents;
  std::vector<std::uint8_t> values;  ///< extents.size() of them
};

/// A file with more pixels than this, or more than 65,535 per side, is refused before memory is allocated for
/// them.
inline constexpr std::size_t most_places = 1u << 25;

/// Whether a file's name ends like a picture's, in any case: .png, .jpg, .jpeg, .jpe, .jfif or .webp.
bool names_picture(std::string_view name);

/// Decodes a PNG, JPEG or WebP file, independently of its name. The result has 1 channel if the file is grey,
/// and 3 (red, green, blue) otherwise. Drops transparency, reduces 16 bits to 8, and expands palettes. Does
/// not apply gamma, colour profiles or EXIF orientation. Throws data_error, without the file's name, if the
/// file has another format, is damaged, truncated or animated, or is CMYK. Reuses storage. Thread safety:
/// distinct objects: safe. Shared objects: unsafe.
void decode_picture(std::string_view file, pixels& into);

/// A PNG file of a picture with 1 or 3 channels; throws usage_error for others.
std::string encode_png(pixels const& of);

namespace detail {
class picture_reader;
}

/// A folder of pictures: `DIRECTORY/class/name.png`, or another ending of `names_picture`. A record has the
/// floats `image` from 0 to 255 (height, width, channels), the integers `height`, `width` and `label`, and
/// the text `file`. The label is the index of the folder's name in byte order; a folder without pictures
/// counts, too. If DIRECTORY itself contains the pictures and has no folders, records have no `label`.
///
/// The folder is one shard. Pictures with labels are in a pseudo-random order derived from their names, so
/// that each task has some of all classes. Those without labels are in the order of their names. A folder
/// whose name marks it as no data is not a class, nor is a link back to DIRECTORY. Sub-folders of a class and
/// other files are skipped. The notes report what was left out.
class picture_folder : public source {
 public:
  /// Lists the files and opens none. Throws error if the directory cannot be listed, and data_error if both
  /// it and its folders contain pictures.
  explicit picture_folder(std::string const& directory);

  std::vector<shard> const& shards() const override { return shards_; }

  /// Its reader's errors name the file, and it throws data_error for a damaged picture.
  std::unique_ptr<reader> open() const override;

  /// The digest of the names, the sizes, and the last 64 bytes of each file.
  std::uint64_t digest(std::size_t shard) const override;
  std::string own_file(std::size_t shard, std::uint64_t record) const override;
  std::span<std::string const> classes() const override { return classes_; }
  std::span<std::string const> notes() const override { return notes_; }

 private:
  friend class detail::picture_reader;
  struct file {
    std::uint32_t of_class = 0;
    std::string name;  // with its folder's
  };

  std::string directory_;
  std::vector<std::string> classes_, notes_;
  std::vector<file> files_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/picture.ipp"
#endif
