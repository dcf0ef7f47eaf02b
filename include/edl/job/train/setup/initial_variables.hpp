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

/// The samples that a model's `feed` makes from the first training records, without augmentation.
struct first_samples {
  shape of_one;
  std::size_t count = 0;
  view<float> features;  ///< count × of_one.size()
};

/// Initial values of variables, by their names in checkpoints. Thread safety: one thread.
class initial_variables {
 public:
  /// `layout` must outlive this.
  explicit initial_variables(parameter_layout const& layout) : layout_(layout) {}

  /// The values to fill in, initially zeros. Throws edl::error, which lists the names, if there is no such
  /// variable.
  std::span<float> operator[](std::string_view name);

  /// Copies the filled values into elements [first, first + to.size()) of the arena.
  void write(std::size_t first, std::span<float> to) const;

 private:
  parameter_layout const& layout_;
  std::map<std::size_t, std::vector<float>> filled_;  // by the place in the arena
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/setup/initial_variables.ipp"
#endif
