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

/// Calls work(0), work(1), … side by side, and waits for all. `work` throws nothing.
using work_sharing = std::function<void(std::function<void(int)> const& work)>;

/// The variables of a model, for steps that need each of them whole. Thread safety: const functions are safe,
/// as far as the sharing is.
class whole_variables {
 public:
  explicit whole_variables(parameter_layout const& layout);

  /// Where variables begin, and where the last one ends: ranges of a model begin and end there.
  view<std::size_t> borders() const { return borders_; }

  /// From now on variables are stepped side by side; none: one after another.
  void share(work_sharing by) { share_ = std::move(by); }

  /// Calls work(variable) for each that is trained and lies in the range, the largest first. Each is worked
  /// on by one thread, so their number changes no bits. Throws error where the range cuts a variable.
  void each(element_range range, std::function<void(variable const&)> const& work) const;

 private:
  std::vector<variable> trained_;  // by offset
  std::vector<std::size_t> borders_;
  work_sharing share_;
};

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
#include "edl/compute/optim/whole_variables.ipp"
#endif
