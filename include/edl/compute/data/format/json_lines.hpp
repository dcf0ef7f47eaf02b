// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/format/text_file.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {
class json_reader;
}

/// JSON lines (jsonlines.org): each line is an object, and its members are the features. A text gives bytes;
/// a number, or true as 1 and false as 0, gives an integer or a float. A list of these is a list, and lists
/// within lists are flattened. Member `b` of an object `a` is `a.b`. If a member is null or missing, the
/// record lacks the feature. Empty lines are skipped. A feature with a fraction in one value gives floats in
/// all records; whole numbers there may still be read as integers. If one of its whole numbers is too large
/// for 64 bits, a feature gives texts.
///
/// Scans the whole file once, for the lines' offsets and the features' kinds. A file is one shard. It may be
/// compressed (compute/data/format/text_file.hpp).
class json_lines_source : public table {
 public:
  /// Throws data_error, which names file and line, if a line is longer than 16 MiB, or there are more than
  /// 16,384 features. A line that is not an object, or has a text where most have numbers, is an error when
  /// it is read.
  explicit json_lines_source(std::string const& path);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t line_in_file(std::size_t /*shard*/, std::uint64_t record) const override {
    return numbers_.at(std::size_t(record));
  }
  std::vector<table_column> const& columns() const override { return columns_; }
  std::span<std::string const> notes() const override { return notes_; }

  /// Throws data_error if a feature has numbers here, and texts elsewhere.
  void agree(std::vector<table_column> const& with) override;

 private:
  friend class detail::json_reader;
  struct line {
    std::uint64_t begin = 0;
    std::uint32_t size = 0;
  };

  detail::text_file file_;
  std::vector<table_column> columns_;
  std::unordered_map<std::string, std::size_t> places_;  // of the columns, by name
  std::vector<line> lines_;
  std::vector<std::uint64_t> numbers_;  // of those lines
  std::vector<shard> shards_;
  std::vector<std::string> notes_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/json_lines.ipp"
#endif
