// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "edl/job/master/checkpoint_queue.hpp"
#include "edl/job/master/evaluation.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/job_state.hpp"
#include "edl/job/master/worker_worlds.hpp"

namespace edl::master {

/// Decides which versions of the model are evaluated, which are written as checkpoints, and which their
/// keepers may release. Everything refers to the current generation. Its arguments must outlive it.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class model_versions {
 public:
  /// `tasks`: of evaluations. Throws usage_error if an evaluation job has nothing to evaluate.
  model_versions(job_options const& options, job_state& job, worker_worlds& worlds,
                 task_queue::options const& tasks, time_point now);

  evaluation const& evaluations() const { return evaluation_; }
  evaluation& evaluations() { return evaluation_; }
  checkpoint_queue const& checkpoints() const { return checkpoints_; }

  std::uint64_t newest() const { return newest_; }  ///< reported in this generation
  void heard(std::uint64_t version) { newest_ = std::max(newest_, version); }

  /// Whether workers pause at this version, and it has not been reported yet.
  bool unannounced(std::uint64_t version) const { return options_.rests_to_evaluate && version > announced_; }

  /// A keeper has frozen a version.
  void reached(version_report const& r, time_point now);

  /// Call when an evaluation's result has been used. False: the result no longer counts.
  bool judged(std::uint64_t version);

  /// `error`: as in `coordinator::checkpoint_written`.
  void written(std::uint64_t version, std::string const& error);

  /// Call after the training: this is the last version.
  void last(std::uint64_t version, time_point now);
  bool last_known() const { return last_.has_value(); }

  /// Reports completed evaluations.
  void take_results();

  /// The last version cannot be evaluated, and the job ends without that.
  void give_up_evaluation(std::string const& why);
  std::string const& unevaluated() const { return unevaluated_; }  ///< the reason; empty: it was evaluated

  // ---- Generations ----

  /// Voids leases and checkpoints in progress.
  void interrupt();

  /// The model has rolled back to `version`. `copied`: from a worker's copy, which still has older frozen
  /// versions.
  void go_back_to(std::uint64_t version, bool copied);
  void go_on_from(std::uint64_t version) { newest_ = version; }

 private:
  void evaluate(evaluated_version v, time_point now);
  void release(evaluated_version of);
  void write(write_checkpoint const& c);
  void write_when_judged(std::uint64_t version);

  job_options const& options_;
  job_state& job_;
  worker_worlds& worlds_;
  evaluation evaluation_;
  checkpoint_queue checkpoints_;
  std::uint64_t newest_;
  std::uint64_t announced_ = 0;            // the newest version that was reported, or need not be
  std::optional<std::uint64_t> unjudged_;  // a checkpoint that waits for evaluations
  std::optional<std::uint64_t> last_;      // reported in the closing phase
  std::string unevaluated_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/model_versions.ipp"
#endif
