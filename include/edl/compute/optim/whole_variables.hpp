// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Calls work(0), work(1), … concurrently, and waits for all. `work` must not throw.
using work_sharing = std::function<void(std::function<void(int)> const& work)>;

/// The variables of a model, for steps that need each of them whole. Thread safety: const functions are safe
/// if the sharing is.
class whole_variables {
 public:
  explicit whole_variables(parameter_layout const& layout);

  /// The offset of each variable, and the end of the last one: ranges of a model begin and end there.
  view<std::size_t> borders() const { return borders_; }

  /// Updates variables concurrently from now on; empty: one after another.
  void share(work_sharing by) { share_ = std::move(by); }

  /// Calls work(variable) for each trained variable in the range, the largest first. One thread processes
  /// each, so results are bitwise equal for any number of threads. Throws error if the range cuts a variable.
  void each(element_range range, std::function<void(variable const&)> const& work) const;

 private:
  std::vector<variable> trained_;  // by offset
  std::vector<std::size_t> borders_;
  work_sharing share_;
};

/// The parameters whose names match one of `patterns`, as ranges of the arena, ordered and not adjacent.
/// Patterns are those of POSIX `fnmatch` without flags, with ',' between two: `*` matches any characters,
/// including `/`. Carried state is not a parameter. Throws error for a pattern that matches none, with
/// similar names, and if all match.
std::vector<element_range> fixed_elements(parameter_layout const& layout, std::string const& patterns);

/// Calls work(range) for each part of `all` outside `fixed`, whose ranges are ordered and not adjacent.
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
#include "edl/compute/optim/whole_variables.ipp"
#endif
