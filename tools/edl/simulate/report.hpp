// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "simulate/simulation.hpp"

namespace edl::simulate {

/// Mean, median and 99 % of some values; zeros for none.
struct summary {
  double mean = 0, median = 0, p99 = 0;
  std::size_t count = 0;
};
summary summary_of(std::vector<double> values);

/// Seconds that each job waited for its first worker, and until it was done.
std::vector<double> waits(outcome const& of);
std::vector<double> completions(outcome const& of);

/// A row for each outcome, and one for all together. The first line says that it is simulated, the second one
/// what of it the controller does not do.
std::string to_table(std::vector<std::pair<std::string, outcome>> const& all);
nlohmann::json to_json(std::vector<std::pair<std::string, outcome>> const& all);

/// Use of the resources, and jobs that run and wait, over time; labelled as simulated.
std::string to_svg(std::string const& title, outcome const& of);

}  // namespace edl::simulate
