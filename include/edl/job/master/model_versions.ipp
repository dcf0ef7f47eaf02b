// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/model_versions.hpp"

namespace edl::master {
namespace detail {

EDL_INLINE std::vector<shard> evaluated_shards(job_options const& o) {
  bool const wanted = o.type == job_type::evaluation_only ||
                      (o.type == job_type::training_with_evaluation && o.evaluation_steps > 0);
  return wanted ? o.validation : std::vector<shard>{};
}

}  // namespace detail

EDL_INLINE model_versions::model_versions(job_options const& options, job_state& job, worker_worlds& worlds,
                                          task_queue::options const& tasks, time_point now)
    : options_(options),
      job_(job),
      worlds_(worlds),
      evaluation_(detail::evaluated_shards(options),
                  {.tasks = tasks,
                   .start_delay = options.evaluation_start_delay,
                   .throttle = options.evaluation_throttle,
                   .judged = options.judges},
                  now),
      newest_(options.start.version) {
  if (options.type == job_type::evaluation_only && evaluation_.empty())
    throw usage_error("--validation_data holds no record");
  if (!options.trains()) return;
  announced_ = newest_;
  if (newest_ > 0) evaluation_.roll_back(newest_);
}

EDL_INLINE void model_versions::reached(version_report const& r, time_point now) {
  heard(r.version);
  announced_ = std::max(announced_, r.version);
  if (r.evaluate) evaluate({r.version, true}, now);
  if (!r.checkpoint) return;
  // A world that begins with this version reports it again.
  bool const again = options_.replicas && checkpoints_.newest() && r.version <= *checkpoints_.newest();
  if (options_.checkpoint && !again)
    write_when_judged(r.version);
  else
    job_.add(release_frozen{r.version, false});
}

EDL_INLINE void model_versions::evaluate(evaluated_version v, time_point now) {
  if (evaluation_.version_reached(v, now)) {
    if (v.frozen) worlds_.freeze(v.version);
  } else if (v.frozen && !evaluation_.wants_frozen(v.version)) {
    job_.add(release_frozen{v.version, true});
  }
}

// Defers a checkpoint until the evaluations up to its version are judged. A job that continues from it then
// need not repeat their decisions.
EDL_INLINE void model_versions::write_when_judged(std::uint64_t version) {
  if (!options_.judges || evaluation_.done_up_to(version)) return write({job_.generation(), version, false});
  if (auto const older = std::exchange(unjudged_, version)) job_.add(release_frozen{*older, false});
  // Its members keep this version in place of one that waits to be written.
  if (auto const waiting = checkpoints_.drop_waiting()) job_.add(release_frozen{*waiting, false});
}

EDL_INLINE bool model_versions::judged(std::uint64_t version) {
  if (!evaluation_.judged(version)) return false;
  release({version, true});
  if (unjudged_ && evaluation_.done_up_to(*unjudged_))
    write({job_.generation(), *std::exchange(unjudged_, std::nullopt), false});
  return true;
}

EDL_INLINE void model_versions::write(write_checkpoint const& c) {
  invariant(job_.leasing(), "a checkpoint is begun by the generation that trains");
  auto const next = checkpoints_.add(c);
  if (next.dropped) job_.add(release_frozen{*next.dropped, false});
  if (next.start) job_.add(*next.start);
}

EDL_INLINE void model_versions::written(std::uint64_t version, std::string const& error) {
  auto const one = checkpoints_.current(version);
  if (!one) return;
  auto const next = checkpoints_.ended(error.empty());
  if (one->final && !error.empty()) {
    if (job_.suspending())
      return job_.end_suspended(fmt::format("the newest state cannot be written: {}", error));
    return job_.fail(fmt::format("the final checkpoint cannot be written: {}", error));
  }
  if (!one->final) job_.add(release_frozen{version, false});
  if (error.empty())
    job_.say(severity::info, fmt::format("Checkpoint of version {} written", version), topic::checkpoint);
  else
    job_.say(severity::warning,
             fmt::format("the checkpoint of version {} cannot be written: {}", version, error),
             topic::checkpoint);
  if (next) job_.add(*next);
}

EDL_INLINE void model_versions::last(std::uint64_t version, time_point now) {
  invariant(job_.phase() == job_phase::closing, "the last version is announced after training has ended");
  if (last_) return;
  last_ = newest_ = version;
  if (options_.final_checkpoint && checkpoints_.final_version() != version)
    write({job_.generation(), version, true});
  if (job_.suspending()) return;
  evaluation_.rests(version);
  evaluate({version, false}, now);
}

EDL_INLINE void model_versions::take_results() {
  while (auto result = evaluation_.take_result()) {
    auto const of = result->evaluated;
    job_.add(evaluation_done{*std::move(result)});
    if (options_.judges) break;
    release(of);
  }
}

EDL_INLINE void model_versions::release(evaluated_version of) {
  worlds_.release(of.version);
  if (of.frozen) job_.add(release_frozen{of.version, true});
}

EDL_INLINE void model_versions::give_up_evaluation(std::string const& why) {
  unevaluated_ = why;
  release(evaluation_.give_up());
}

EDL_INLINE void model_versions::interrupt() {
  auto frozen = checkpoints_.clear();
  if (auto const waiting = std::exchange(unjudged_, std::nullopt)) frozen.push_back(*waiting);
  if (options_.replicas) worlds_.not_written(frozen);
  last_.reset();
  evaluation_.recover_all();
}

EDL_INLINE void model_versions::go_back_to(std::uint64_t version, bool copied) {
  invariant(!checkpoints_.current() && !last_, "a generation begins with no version in progress");
  if (copied)
    evaluation_.forget_after(version);  // the survivors still have older versions frozen
  else
    evaluation_.roll_back(version);
  // Members report a copied version again; a checkpoint's version was judged before it was written.
  announced_ = version - std::uint64_t(copied && version > 0);
  newest_ = version;
  checkpoints_.go_back_to(version);
}

}  // namespace edl::master
