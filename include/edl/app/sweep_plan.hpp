// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/job/config/monitor.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"

namespace edl::app {

/// The search space: values of hyperparameters, and the length of runs.
struct sweep_options {
  std::vector<std::string> grid;    ///< `name=value,value,…`: all combinations
  std::vector<std::string> random;  ///< `name=from:to`, optionally with `:log` or `:whole`: drawn in between
  std::vector<std::string> set;     ///< `name=value`: for every run; not a searched name
  std::uint32_t trials = 0;         ///< with `random`: number of draws, for each combination of the grid
  std::uint64_t seed = 1;           ///< of the draws
  std::uint64_t steps = 0;          ///< of a complete run
  std::uint32_t halving =
      0;  ///< each round continues one of this many runs, for this many times the steps; 0: all are complete
  std::uint64_t first_steps = 0;  ///< of the first round; 0: an eighth of a complete run
};

/// One choice of values, and its result.
struct trial {
  train::settings values;
  std::uint64_t steps = 0;      ///< completed
  std::optional<double> value;  ///< of the metric, after these steps; empty if its run failed
  std::string failure;          ///< the reason for that
  std::uint32_t attempt = 0;    ///< how often a failure has restarted it; counted in a cluster only
};

/// The flags of the search: --by, --grid, --random, --trials, --halving and --first_steps.
std::vector<cli::flag> sweep_flags();

/// The options from a command line with these flags, --set, --seed and --max_step.
sweep_options sweep_options_of(cli::command_line const& l);

/// All trials of a search, in a fixed order. Checks every value against the model's declarations, and throws
/// usage_error like `train::set`. It also throws usage_error for an empty search, for more than 10,000
/// trials, for a searched name that is also set, and for a `;` in a name or a value, because it separates
/// settings. A caller that does not know the model passes no `known`; the runs then check the values.
std::vector<trial> trials_of(sweep_options const& o, std::optional<train::hyperparameters> const& known);

/// The steps after which the runs of each round stop, ascending; the last is `steps`.
std::vector<std::uint64_t> rounds_of(sweep_options const& o);

/// The numbers of the trials in a round, ascending. The first round has all trials, each later one the best
/// share of the previous round, rounded up. Ties go to the lower number. A trial without a value has failed,
/// and is left out. Empty if a trial of the previous round has no result yet.
std::vector<std::size_t> runs_of(std::size_t round, std::vector<trial> const& all, sweep_options const& o,
                                 monitor const& by);

/// A table for people: trials with the most steps first, and the best of these at the top; at most `most`
/// lines. A failed trial shows its reason.
std::string table_of(std::vector<trial> const& all, monitor const& by, std::size_t most = 20);

/// The number of the best trial among those with the most steps; empty if all failed.
std::optional<std::size_t> best_of(std::vector<trial> const& all, monitor const& by);

/// The trials of a sweep, and the settings for which its results are valid.
struct sweep_list {
  std::string sweep;
  std::vector<trial> trials;
};

/// Converts to JSON and back. Throws error, which names `where`, for an invalid list.
std::string to_json(sweep_list const& all);
sweep_list list_from_json(std::string const& text, std::string const& where);

/// Throws error if a trial has more steps than a complete run.
void check_steps(sweep_list const& all, std::uint64_t most, std::string const& where);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/sweep_plan.ipp"
#endif
