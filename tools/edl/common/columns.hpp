// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/command_line.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/random.hpp"

namespace edl::tool {

/// What has been seen of one feature of all records.
struct column {
  example::kind kind = example::kind::none;
  std::uint64_t records = 0, values = 0, not_finite = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -least - 1;  ///< of integers
  double mean = 0, squares = 0;  ///< of the values, and of what they differ from it
  std::vector<double> sampled;   ///< values, each with the same chance, to cut them into buckets
  std::unordered_map<std::string, std::uint64_t>
      words;              ///< texts and whole numbers, and how often they stand
  bool countable = true;  ///< all of its values are among the words
  bool many = false;      ///< it has more words than were counted, and none of them is kept
  std::uint64_t odd = 0;  ///< texts that no file of words can have
  std::string odd_one;    ///< the first of them, its place, and why

  void take(double x, random_stream const& random);
  void count(std::string_view word, std::size_t most, std::function<std::string()> const& place);
  bool is_number() const { return kind != example::kind::strings && values > 0; }
  double deviation() const;
};

using columns = std::map<std::string, column, std::less<>>;

/// Reads all records once, with a line of progress on a terminal. Up to `most_words` distinct values of a
/// feature are counted. Throws data_error for a feature of two kinds.
columns read_columns(data::source const& from, std::size_t most_words);

/// The words, the most frequent first.
std::vector<std::string> vocabulary_of(column const& c);

}  // namespace edl::tool
