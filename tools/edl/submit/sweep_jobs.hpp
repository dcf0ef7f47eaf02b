// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "edl/app/sweep_plan.hpp"
#include "edl/job/config/monitor.hpp"
#include "submit/submission.hpp"

namespace edl::tool {

/// A search over hyperparameters by jobs of a cluster.
struct cluster_sweep {
  std::string name;  ///< of the sweep; the names of its jobs begin with it
  app::sweep_options options;
  monitor by;
  std::size_t parallel = 1;  ///< jobs that are there at once, running or waiting
  std::string output;        ///< of the list of trials: a directory on this machine, or `s3://BUCKET/PREFIX`
  bool keep_jobs = false;    ///< jobs that are done stay
  bool prints = false;       ///< the first jobs' objects are printed, and nothing is submitted
  std::vector<app::trial> all;  ///< without results
  std::vector<std::uint64_t> rounds;
  words job_flags;       ///< of every job, as `edl train` reads them
  std::string identity;  ///< what results mean something for
  submission base;       ///< the first job under the sweep's own name: notes, and an image to build
  command_line line;
};

/// What `edl sweep` knows beside the flags of the model's program, these, and both together.
std::vector<flag> sweep_job_flags();
std::vector<flag> sweep_model_flags();
std::vector<flag> cluster_sweep_flags();

/// Reads and checks a command line, and the file that it names (-f). Throws usage_error.
cluster_sweep read_sweep(words const& line);

/// "rates-3". A trial keeps its name from round to round, because its checkpoints are of a job of that name.
std::string job_name(cluster_sweep const& s, std::size_t trial);

/// A job of a trial: the round that it runs, and how often the trial was begun anew before.
struct trial_turn {
  std::size_t round = 0;
  std::uint32_t attempt = 0;
  bool operator==(trial_turn const&) const = default;
};

/// Where a trial keeps its checkpoints: "trial-3" in --checkpoint_dir. One that is begun anew has another
/// folder ("trial-3-attempt-1"), because what is in the first may be of a later round.
std::string folder_of(cluster_sweep const& s, std::size_t trial, std::uint32_t attempt);

/// The job of a trial, as `edl train` makes it. It has the values of the trial, and its folder. Throws
/// usage_error.
submission job_of(cluster_sweep const& s, std::size_t trial, trial_turn turn);

/// What finds the objects of a sweep, and what tells which job of which sweep they are.
inline constexpr char sweep_label[] = "elasticdl-sweep", sweep_annotation[] = "elasticdl/sweep";
std::map<std::string, std::string> labels_of(cluster_sweep const& s);
std::map<std::string, std::string> annotations_of(cluster_sweep const& s, std::size_t trial, trial_turn turn);

/// Which job of this trial an object is of; nothing: it is of no job of this sweep, or of an attempt after
/// `attempt`.
std::optional<trial_turn> turn_of(nlohmann::json const& object, cluster_sweep const& s, std::size_t trial,
                                  std::uint32_t attempt);

/// How a trial's job does, by its master's pod.
struct trial_state {
  enum class phase {
    under_way,
    done,      ///< `value` is the metric's, as the last report of the job has it
    unread,    ///< it has ended well, and its last report is not there
    failed,    ///< `why`: what is known without its log
    leaving,   ///< somebody has deleted it
    hopeless,  ///< `why`: it cannot start, whatever time passes
  } state = phase::under_way;
  std::optional<double> value{};
  std::string why{};  ///< also what it waits for, while it is under way
};
trial_state state_of_trial(nlohmann::json const& master, monitor const& by, std::string const& flags = "");

}  // namespace edl::tool
