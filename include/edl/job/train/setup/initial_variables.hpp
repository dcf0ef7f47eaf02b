// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// What a model's `feed` makes of the first records of the training data, without augmentation.
struct first_samples {
  shape of_one;
  std::size_t count = 0;
  view<float> features;  ///< count × of_one.size()
};

/// Initial values of variables, by name, as checkpoints have them. Thread safety: one thread.
class initial_variables {
 public:
  /// `layout` outlives this.
  explicit initial_variables(parameter_layout const& layout) : layout_(layout) {}

  /// To be filled; zeros at first. Throws edl::error, which lists the names, where there is no such variable.
  std::span<float> operator[](std::string_view name);

  /// Copies what has been filled into elements [first, first + to.size()) of the arena.
  void write(std::size_t first, std::span<float> to) const;

 private:
  parameter_layout const& layout_;
  std::map<std::size_t, std::vector<float>> filled_;  // by the place in the arena
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/initial_variables.ipp"
#endif
