// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// CIFAR-10 in its binary layout (cs.toronto.edu/~kriz/cifar.html): a record is a label byte, then 1,024
/// bytes each of red, green and blue. Features: `image` (3,072 floats 0 to 255, in the order height, width,
/// channel), `label` (one integer). A file is a shard.
class cifar10_source : public source {
 public:
  explicit cifar10_source(std::vector<std::string> const& paths);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  std::vector<detail::input_file> files_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/cifar10.ipp"
#endif
