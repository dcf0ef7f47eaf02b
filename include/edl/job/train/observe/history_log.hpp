// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/clock.hpp"
#include "edl/core/log.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/observe/event_file.hpp"
#include "edl/job/train/observe/history_file.hpp"
#include "edl/job/train/observe/progress.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// The history of a training job, `history.jsonl` beside its checkpoints: a line for every so many steps, and
/// one for each evaluation. The same goes into event files for TensorBoard, where they are wanted. Files are
/// written on another thread. Thread safety: unsafe, but for `flush`.
class history_log {
 public:
  /// Who follows a history while it is made. Both are there, or none.
  struct listener {
    std::function<void(history_file::kind of, std::uint64_t step, std::string const& line)> line;
    std::function<void(std::uint64_t step)> go_on_from;  ///< lines of later steps are void
  };

  struct options {
    std::string path;           ///< of history.jsonl; empty: none
    std::string events;         ///< directory of TensorBoard's event files; empty: none
    std::uint64_t steps = 100;  ///< between two lines, at least; 0: only evaluations have lines
    std::function<double(std::uint64_t version)> rate;  ///< the learning rate at a version
    std::function<double()> clock;                      ///< seconds since 1970; empty: the system's
    listener to = {};                                   ///< told of the same lines
  };

  history_log(options o, logger log);

  /// Whether a look at this version may write a line.
  bool due(std::uint64_t version) const { return version >= due_; }

  /// How far the job is. A generation that goes back takes the lines of later steps away.
  void look(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// An evaluation of this version is complete.
  void evaluated(master::coordinator const& of, std::uint64_t version, metric_values const& values,
                 std::uint64_t records);

  /// For TensorBoard alone: tensors of a version by their tags, and pictures that are of no version.
  void tensors(std::uint64_t version, std::vector<std::pair<std::string, view<float>>> const& values);
  void pictures(std::vector<std::pair<std::string, event_picture>> const& all);

  /// The job has ended: the steps since the last line have one of their own.
  void close(master::coordinator const& of, master::job_progress const& p, time_point now);

  void flush();

 private:
  bool begun(master::coordinator const& of, master::job_progress const& p);
  void write(master::job_progress const& p, time_point now);
  void begin_events(std::uint64_t version);
  void remember_members(master::job_progress const& p);
  void append(history_file::kind of, std::uint64_t step, std::string line);
  bool wanted() const { return !options_.path.empty() || !options_.events.empty() || options_.to.line; }

  options options_;
  std::uint64_t due_ = 0, newest_ = 0;       // the next line's version; any line's
  std::optional<std::uint64_t> generation_;  // whose begin is known
  master::job_progress last_;                // at the last line
  std::uint64_t workers_ = 0, servers_ = 0;  // when there last were workers
  std::optional<time_point> since_;          // when that was
  logger log_;
  history_file file_;
  std::list<history_file> events_;  // the last is written to; none is waited for here
};

/// An object of JSON, in which what is no number is null.
std::string metrics_as_json(metric_values const& of);

/// Where the history of a job stands that has this directory.
std::string history_path(std::string const& checkpoint_dir);

/// That of a job as it asks for it.
history_log::options history_options(job const& j, program const& p);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/history_log.ipp"
#endif
