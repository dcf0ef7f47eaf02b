// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/data/format/recordio.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// RecordIO files whose records are serialised tf.train.Examples; a file is a shard, one without records is
/// none.
class recordio_source : public source {
 public:
  /// Indexes the files, in this order. A data_error names the first that is damaged; with `skip_damaged`,
  /// what a damaged file hides is left out and told by `damage`.
  explicit recordio_source(std::vector<std::string> const& paths, source_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::span<std::string const> damage() const override { return damage_; }

 private:
  std::vector<std::shared_ptr<recordio_index const>> files_;
  std::vector<shard> shards_;
  std::vector<std::string> damage_;
  std::size_t cache_bytes_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/recordio_source.ipp"
#endif
