// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"

namespace edl {

/// The parameters whose names match one of `patterns`, as ranges of the arena, in order and apart from each
/// other. Patterns are those of POSIX `fnmatch` without flags, with ',' between two: `*` stands for any
/// characters, `/` among them. Carried state is no parameter. Throws error for a pattern that matches none,
/// with near names, and where all are matched.
std::vector<element_range> fixed_elements(parameter_layout const& layout, std::string const& patterns);

/// Calls work(range) for each part of `all` that lies in none of `fixed`, which are in order and apart.
template <class Work>
void for_each_outside(std::span<element_range const> fixed, element_range all, Work const& work) {
  std::size_t at = all.first;
  for (element_range const& f : fixed) {
    if (f.last <= at) continue;
    if (f.first >= all.last) break;
    if (f.first > at) work(element_range{at, f.first});
    at = f.last;
  }
  if (at < all.last) work(element_range{at, all.last});
}

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/fixed_elements.ipp"
#endif
