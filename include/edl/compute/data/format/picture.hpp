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

/// The picture of a record, without a copy: rows from the top, the channels of a place side by side. Valid as
/// long as the record.
struct picture {
  shape extents;
  view<float> values;  ///< extents.size() of them
};

/// The picture that a record of a folder of pictures has: the floats `name`, and the integers `height` and
/// `width`. A data_error if the record has none, or they do not belong together.
picture picture_of(example const& record, std::string_view name = "image");

/// Writes `from` in another size into `into`, which has to.size() elements. An axis that shrinks takes the
/// average over the area that a place covers. An axis that grows is linear between the centres of places,
/// and constant beyond the outermost. One channel becomes three by copies. Three become one by the weights of
/// ITU-R BT.601: 0.299, 0.587, 0.114. A data_error for other changes of the channels; a usage_error if `to`
/// is empty or `into` has another size. Thread safety: safe.
void resize(picture const& from, shape to, std::span<float> into);

/// The same as a tensor of its own.  // (to.height, to.width, to.channels)
inline xt::xtensor<float, 3> resized(picture const& from, shape to) {
  xt::xtensor<float, 3> into(
      std::array<std::size_t, 3>{std::size_t(to.height), std::size_t(to.width), std::size_t(to.channels)});
  resize(from, to, {into.data(), into.size()});
  return into;
}

}  // namespace edl

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

namespace detail {
class picture_reader;
}

/// A folder of pictures: `DIRECTORY/class/name.png`, or another ending of `names_picture`. A record has the
/// floats `image` from 0 to 255 (height, width, channels), the integers `height`, `width` and `label`, and
/// the text `file`. The label is the place of the folder's name in byte order, and a folder without pictures
/// counts, too. Where pictures stand in DIRECTORY itself and it has no folders, records have no `label`.
///
/// The folder is one shard. Pictures with labels stand in an order that is drawn from their names, so that
/// each task has some of all classes. Those without labels stand in the order of their names. A folder whose
/// name says that it is no data is no class, nor is a link that leads back to DIRECTORY. Sub-folders of a
/// class are not entered, and other files are passed over. The notes say what was left out.
class picture_folder : public source {
 public:
  /// Lists the files and opens none. An error if the directory cannot be listed; a data_error if there are
  /// pictures both in it and in its folders.
  explicit picture_folder(std::string const& directory);

  std::vector<shard> const& shards() const override { return shards_; }

  /// Its reader's errors name the file. A damaged picture is a data_error.
  std::unique_ptr<reader> open() const override;

  /// Of the names, the sizes, and the last 64 bytes of each file.
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
