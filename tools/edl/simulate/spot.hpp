// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "simulate/spot_job.hpp"

namespace edl::simulate {

/// Costs of a strategy, by case.
struct spot_row {
  std::string name{}, strategy{};    ///< for a column, for a row
  std::vector<double> cost;          ///< USD
  std::vector<double> ratio;         ///< to the optimum under the same rules
  std::vector<double> published;     ///< USD; 0: none
  std::vector<double> as_published;  ///< of this simulation, by the published way to count
  double on_demand = 0;              ///< hours of all
  int moves = 0, missed = 0;
};

/// All strategies in all cases: those of others, and edl's, with a published start of `slow`; the optimum and
/// edl's with `quick`.
std::vector<spot_row> compare_spot(spot_trace const& trace, std::vector<spot_case> const& cases,
                                   spot_rules const& slow, spot_rules const& quick);

/// A row for each strategy, then the ratios of each group of cases with one name.
std::string to_table(std::vector<spot_case> const& cases, std::vector<spot_row> const& rows);
nlohmann::json to_json(std::vector<spot_case> const& cases, std::vector<spot_row> const& rows);

}  // namespace edl::simulate
