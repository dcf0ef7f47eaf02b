// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// A text cut into windows, for models that predict the next character. Record i has one feature, `text`: the
/// `length` + 1 bytes from offset i · length. That is one more than the network reads, so that each byte has
/// a successor. An incomplete window at the end is left out. The file is read into memory.
class text_source : public source {
 public:
  static constexpr std::uint64_t longest = 65'536;

  /// A usage_error if the length is not from 1 to `longest`. A data_error if the file is shorter than a
  /// window, or larger than 1 GiB.
  text_source(std::string const& path, std::uint64_t length);

  /// The same from one argument, `text:LENGTH:FILE`.
  static std::unique_ptr<source> open_named(std::string const& given);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  friend class text_reader;

  std::string path_, text_;
  std::uint64_t length_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/text.ipp"
#endif
