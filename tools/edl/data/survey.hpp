// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/compute/data/reader.hpp"

namespace edl::tool {

/// What was seen of one feature.
struct seen_feature {
  example::kind kind = example::kind::none;
  bool mixed = false;  ///< it is of several kinds
  std::uint64_t records = 0;
  std::size_t least_values = std::numeric_limits<std::size_t>::max(), most_values = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;                  ///< of finite numbers
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -least - 1;  ///< of integers
  std::uint64_t not_finite = 0, blank = 0;  ///< `blank`: a text that is empty, which says as much as none
  std::unordered_map<std::string, std::uint64_t> distinct;  ///< single whole numbers and texts, and how often
  bool many = false;                                        ///< more than are counted
};

/// What was seen of records, at most `limit` of them, evenly spread over all.
struct survey {
  std::map<std::string, seen_feature> features;
  std::uint64_t records = 0, unreadable = 0;
};

/// Distinct values of a feature that are counted.
inline constexpr std::size_t most_distinct = 10'000;

survey survey_records(data::source const& of, std::uint64_t limit);

/// A float, or a whole number with all of its digits, in the fewest digits that tell it from others.
std::string number_text(nlohmann::json const& number);

/// {name, kind, missing, and what else is known}, sorted by name.
nlohmann::json describe(survey const& s);

/// The features of a record, one a line, as a person reads them.
std::string describe(example const& record);

/// Pictures of a source side by side, evenly spread over its records and sorted by label.
struct contact_sheet {
  data::pixels picture;
  std::size_t pictures = 0, columns = 0;
  std::vector<std::int64_t> labels;  ///< of each; empty where there are none
};

/// At most `most` pictures, 64 places high and wide each. A data_error if the records have none: a feature
/// `image` of floats, with `height` and `width` or of a square's size.
contact_sheet make_contact_sheet(data::source const& of, std::size_t most);

}  // namespace edl::tool
