// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::tool {

/// A program that learns one column of a table from the others, as a person would begin it.
struct table_model {
  std::string name;                ///< of the program, made of the label's column
  std::string source, test;        ///< C++, and a shell script that trains it for some steps
  std::vector<std::string> notes;  ///< what was left out and why, and what the label was taken for
  std::size_t epochs = 1;          ///< for some thousand steps
  std::string missing;             ///< the flag, behind a blank, where the usual words do not say it
  std::string leaving_out;         ///< flags that leave out records without the label, if there are any
};

/// Reads all records at `path` once. Numbers are normalised, words become ids of a vocabulary or of hashes,
/// dates become days, weekdays and months; a missing cell counts as the mean, or as an id of its own. Two
/// labels are a yes and a no, some labels are classes, many numbers are a regression. Throws usage_error
/// where there is no such column, or nothing to learn it from, and as the reading of records does. `missing`
/// is a flag for `data::read_missing_words`.
table_model model_of_table(std::string const& path, std::string const& label,
                           std::string const& missing = "auto");

}  // namespace edl::tool
