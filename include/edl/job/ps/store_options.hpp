// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "edl/compute/optim/part_rates.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/sparse/table.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"
#include "edl/job/ps/policy.hpp"

namespace edl::ps {

/// The options of a store. `layout`, `rule` and `when` must outlive it.
struct store_options {
  parameter_layout const& layout;
  element_range elements;                       ///< of the arena, from `partition`
  element_range slots{};                        ///< hash slots, of the rows of tables; likewise
  std::vector<sparse::table_options> tables{};  ///< of the layout, in order
  update_rule const& rule;
  policy const& when;
  std::uint64_t evaluation_steps = 0;  ///< freeze at versions that are a multiple; 0: never
  std::uint64_t checkpoint_steps = 0;  ///< likewise
  std::size_t most_frozen = 2;         ///< of each kind (`frozen`)
  /// Training pauses at a version until it has been evaluated: no older one is kept for that.
  bool rests_to_evaluate = false;
  double moving_average = 0;           ///< decay of the average of parameters; 0: no average
  std::vector<element_range> fixed{};  ///< of the arena, from `fixed_elements`: no step changes these
  part_rates rates{};                  ///< of parts of the model, from `rates_of_parts`
  bool watches_memory = false;         ///< detects variables, slots and sums that change between two steps
};

}  // namespace edl::ps
