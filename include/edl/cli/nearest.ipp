// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "edl/cli/nearest.hpp"
#include "edl/core/inline.hpp"

namespace edl::cli {

EDL_INLINE std::string nearest(std::string const& name, std::vector<std::string> const& known) {
  std::string best;
  std::size_t least =
      std::min(std::max<std::size_t>(2, name.size() / 3) + 1, std::max<std::size_t>(name.size(), 2) - 1);
  for (std::string const& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);  // Levenshtein's distance, one row at a time
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t k = 1; k <= candidate.size(); ++k) {
        std::size_t const above = row[k];
        row[k] = std::min({above + 1, row[k - 1] + 1, diagonal + (name[i - 1] != candidate[k - 1])});
        diagonal = above;
      }
    }
    if (row.back() < least) least = row.back(), best = candidate;
  }
  return best;
}

}  // namespace edl::cli
