// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
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

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/whole_variables.ipp"
#endif
