// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "edl/cli/nearest.hpp"
#include "edl/core/inline.hpp"

namespace edl::cli {

EDL_INLINE std::string nearest(std::string const& name, std::vector<std::string> const& known) {
  std::string best;
  std::size_t least =
      std::min(std::max<std::size_t>(2, name.size() / 3) + 1, std::max<std::size_t>(name.size(), 2) - 1);
  for (std::string const& candidate : known) {
    // Levenshtein's distance, row by row, in which swapping two neighbours counts as one edit.
    std::vector<std::size_t> row(candidate.size() + 1), above(row.size()), two_above(row.size());
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::swap(two_above, above), std::swap(above, row);
      row[0] = i;
      for (std::size_t k = 1; k <= candidate.size(); ++k) {
        row[k] = std::min({above[k] + 1, row[k - 1] + 1, above[k - 1] + (name[i - 1] != candidate[k - 1])});
        if (i > 1 && k > 1 && name[i - 1] == candidate[k - 2] && name[i - 2] == candidate[k - 1])
          row[k] = std::min(row[k], two_above[k - 2] + 1);
      }
    }
    if (row.back() < least) least = row.back(), best = candidate;
  }
  return best;
}

}  // namespace edl::cli
