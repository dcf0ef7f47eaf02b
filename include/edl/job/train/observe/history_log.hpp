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

/// The history of a training job, `history.jsonl` beside its checkpoints: a line every `steps` steps, and one
/// for each evaluation. If requested, it also writes event files for TensorBoard. Another thread writes the
/// files. Thread safety: unsafe, except `flush`.
class history_log {
 public:
  /// Receives a history while it is written. Both functions are set, or neither.
  struct listener {
    std::function<void(history_file::kind of, std::uint64_t step, std::string const& line)> line;
    std::function<void(std::uint64_t step)> go_on_from;  ///< lines of later steps are void
  };

  struct options {
    std::string path;           ///< of history.jsonl; empty: none
    std::string events;         ///< directory or s3://… of TensorBoard's event files; empty: none
    std::uint64_t steps = 100;  ///< at least, between two lines; 0: only evaluations have lines
    std::function<double(std::uint64_t version)> rate;  ///< the learning rate at a version
    std::function<double()> clock;                      ///< seconds since 1970; empty: the system's
    listener to = {};                                   ///< receives the same lines
    bucket::place like = {};                            ///< has the options for a path in a bucket
  };

  history_log(options o, logger log);

  /// Whether `look` at this version may write a line.
  bool due(std::uint64_t version) const { return version >= due_; }

  /// Records the job's progress. A generation that rolls back drops the lines of later steps.
  void look(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// Records a complete evaluation of this version.
  void evaluated(master::coordinator const& of, std::uint64_t version, metric_values const& values,
                 std::uint64_t records);

  /// Only for TensorBoard: tensors of a version by their tags, and pictures independent of a version.
  void tensors(std::uint64_t version, std::vector<std::pair<std::string, view<float>>> const& values);
  void pictures(std::vector<std::pair<std::string, event_picture>> const& all);

  /// Call when the job has ended: writes a line for the steps since the last one.
  void close(master::coordinator const& of, master::job_progress const& p, time_point now);

  /// Waits until all lines have been written, or attempted, but event files in a bucket.
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
  std::list<history_file> events_;  // the last one is being written; never waits for any
};

/// A JSON object, with null for NaN and infinity.
std::string metrics_as_json(metric_values const& of);

/// The path of a job's history, for this checkpoint directory.
std::string history_path(std::string const& checkpoint_dir);

/// The options for a job.
history_log::options history_options(job const& j, program const& p);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/history_log.ipp"
#endif
