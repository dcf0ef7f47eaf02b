// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// Unsigned bytes with extents, the format of MNIST's files (yann.lecun.com/exdb/mnist: magic {0, 0, type 8,
/// rank}, then a big-endian uint32 per dimension, then the values).
struct idx_values {
  std::vector<std::uint32_t> dims;
  std::string values;  // as many bytes as the product of dims
};

/// Reads an IDX file, packed by gzip or not. A data_error if it is not one, or larger than 1 GiB.
idx_values read_idx(std::string const& path);

/// Images and labels of a pair of IDX files, in memory. Features: `image` (floats 0 to 255, rows·columns of
/// them), `label` (one integer).
class idx_source : public source {
 public:
  idx_source(std::string const& images, std::string const& labels);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  idx_values images_, labels_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/idx.ipp"
#endif
