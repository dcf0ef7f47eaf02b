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

/// What is searched: values of hyperparameters, and how long the runs are.
struct sweep_options {
  std::vector<std::string> grid;    ///< `name=value,value,…`: all combinations
  std::vector<std::string> random;  ///< `name=from:to`, or with `:log`, `:whole` behind: drawn between these
  std::vector<std::string> set;     ///< `name=value`: of every run, and of nothing that is searched
  std::uint32_t trials = 0;  ///< with `random`: how many are drawn; each combination of the grid has as many
  std::uint64_t seed = 1;    ///< of what is drawn
  std::uint64_t steps = 0;   ///< of a whole run
  std::uint32_t halving =
      0;  ///< each round goes on with one of so many runs, for so many times the steps; 0: all are whole
  std::uint64_t first_steps = 0;  ///< of the first round; 0: an eighth of a whole run
};

/// One choice of values, and what became of it.
struct trial {
  train::settings values;
  std::uint64_t steps = 0;      ///< that it has made
  std::optional<double> value;  ///< of the metric, after these; none where its run failed
  std::string failure;          ///< why it did, in words
  std::uint32_t attempt = 0;    ///< how often a failure has made it begin anew; counted in a cluster only
};

/// The flags that say what is searched: --by, --grid, --random, --trials, --halving and --first_steps.
std::vector<cli::flag> sweep_flags();

/// What a line with these flags, --set, --seed and --max_step asks for.
sweep_options sweep_options_of(cli::command_line const& l);

/// All trials of a search, in an order of their own. Every value is checked against what the model declares:
/// usage_error as `train::set`. So is a search for nothing, for more than 10,000 trials, or for a value that
/// is set besides. So is a `;` in a name or a value, because it separates settings. Who does not know the
/// model gives no `known`, and its runs check the values.
std::vector<trial> trials_of(sweep_options const& o, std::optional<train::hyperparameters> const& known);

/// Steps after which the runs of each round stop, ascending; the last are `steps`.
std::vector<std::uint64_t> rounds_of(sweep_options const& o);

/// Which trials take part in a round, by number, in their order. These are all in the first, and then the
/// best share of those of the round before, rounded up. Ties go to the lower number. A trial without a value
/// has failed, and is left out. Empty where one of the round before has no result yet.
std::vector<std::size_t> runs_of(std::size_t round, std::vector<trial> const& all, sweep_options const& o,
                                 monitor const& by);

/// A table for people: those with the most steps first, of these the best; so many lines at most. A trial
/// that has failed says why.
std::string table_of(std::vector<trial> const& all, monitor const& by, std::size_t most = 20);

/// The number of the best trial among those that made the most steps; none where all failed.
std::optional<std::size_t> best_of(std::vector<trial> const& all, monitor const& by);

/// The trials of a sweep, and what its results mean something for.
struct sweep_list {
  std::string sweep;
  std::vector<trial> trials;
};

/// As JSON, and back. Throws error, with `where` in it, for what is no such list.
std::string to_json(sweep_list const& all);
sweep_list list_from_json(std::string const& text, std::string const& where);

/// Throws error where a trial has made more steps than a whole run has.
void check_steps(sweep_list const& all, std::uint64_t most, std::string const& where);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/sweep_plan.ipp"
#endif
