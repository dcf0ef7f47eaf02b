// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "edl/core/shape.hpp"

namespace edl {

/// One named part of the variables' arena.
struct variable {
  std::string name;  ///< unique, e.g. "conv2d_1/kernel"
  extents dims;
  std::size_t offset = 0;  ///< in elements, from the start of the arena
};

/// A table of rows by 64-bit id. They are trained with the variables and stored apart from them.
struct table_shape {
  std::string name;  ///< unique among tables
  int width = 0;     ///< values of a row

  friend bool operator==(table_shape const&, table_shape const&) = default;
};

/// Where a model's variables lie. The arena holds the parameters, then the state (carried but not trained).
/// All code that does not depend on a model works on this.
struct parameter_layout {
  std::vector<variable> variables;  ///< by offset, without gaps
  std::size_t parameters = 0;       ///< elements [0, parameters) are trained
  std::size_t state = 0;            ///< elements [parameters, parameters + state) are carried
  std::vector<table_shape> tables;
  /// Where ranges of the arena may begin and end (`partition`), for an optimiser of whole variables; empty:
  /// anywhere.
  std::vector<std::size_t> borders;

  std::size_t size() const { return parameters + state; }
};

}  // namespace edl
