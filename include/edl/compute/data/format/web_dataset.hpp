// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {
class web_dataset_reader;
}  // namespace detail

/// Tar archives as WebDataset writes them (github.com/webdataset/webdataset), read in place: POSIX ustar and
/// pax, and GNU's long names (tar's manual, "Basic Tar Format"; POSIX.1-2017, pax). Consecutive files whose
/// names are equal up to the first point of the last part form one record: `a/1.jpg`, `a/1.cls`. The ending
/// after that point, in lower case, determines the feature:
/// - a picture (`jpg`, `png`, …): `image`, `height` and `width`, as in a folder of pictures;
/// - `cls`: `label`, one integer;
/// - anything else: a byte string with the name of the ending, e.g. `txt`, `json` or `left.jpg`. A text that
///   is a
///   number may be read as one. `__key__` is the common beginning of the names. Each archive is a shard.
class web_dataset : public source {
 public:
  /// Reads the headers of all files. Throws data_error if an archive is damaged, or a record has two files
  /// for one feature, e.g. two pictures.
  explicit web_dataset(std::vector<std::string> const& paths);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::span<std::string const> notes() const override { return notes_; }

 private:
  friend class detail::web_dataset_reader;
  struct part {
    std::uint64_t begin = 0;
    std::uint32_t size = 0, ending = 0;
  };
  struct archive {
    std::string path;
    std::uint64_t size = 0;
    std::vector<part> parts;
    std::vector<std::size_t> ends;  // of each record, in `parts`
    std::string keys;               // one after the other
    std::vector<std::size_t> key_ends;
  };
  void add(std::string const& path);

  std::vector<archive> archives_;
  std::vector<std::string> endings_;
  std::vector<shard> shards_;
  std::vector<std::string> notes_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/web_dataset.ipp"
#endif
