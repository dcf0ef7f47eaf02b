// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
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
#include "edl/compute/data/format/picture_folder.ipp"
#endif
