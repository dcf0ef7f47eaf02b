// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// Rows of ids with weights, as libFM and LIBSVM have them: `1 451:1 4149:0.5`, which is a label and
/// id:weight pairs, with blanks between them. Empty lines, and those that begin with `#`, are no records.
/// Features: `label` (one float), `ids` (integers, at least 0), `weights` (floats, as many). The file is in
/// memory.
class libfm_source : public source {
 public:
  /// A data_error if there is no row, or the file is larger than 1 GiB. A row that is none is an error when
  /// it is read, with file, line and column.
  explicit libfm_source(std::string const& path);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t record) const override {
    return rows_.at(std::size_t(record)).line;
  }

 private:
  struct row {
    std::size_t first, size, line;
  };
  friend class libfm_reader;

  std::string path_, text_;
  std::vector<row> rows_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/libfm.ipp"
#endif
