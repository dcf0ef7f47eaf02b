// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {
namespace detail {

inline long long whole_seconds(duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

/// The oldest lease of a queue, in words.
EDL_INLINE std::string oldest_of(task_queue const& q, char const* kind, time_point now) {
  auto const l = q.oldest();
  if (!l) return {};
  return fmt::format("worker {}, which has had {} task for {} s", l->worker, kind,
                     whole_seconds(now - l->since));
}

}  // namespace detail

EDL_INLINE std::uint64_t coordinator::steps() const {
  std::uint64_t mark = version_;
  auto const mix = [&](std::uint64_t more) { mark = mark * 0x9e3779b97f4a7c15u + more; };
  auto const count = [&](task_queue const* q) { mix(q ? q->done().records_done : 0); };
  count(tasks());
  count(evaluation_.active());
  mix(evaluation_.completed().value_or(0));
  mix(minibatches_);
  return mark;
}

EDL_INLINE std::string coordinator::waits_for(time_point now) const {
  std::string all;
  auto const add = [&](std::string const& one) { all += one.empty() ? "" : (all.empty() ? "" : "; ") + one; };
  if (isolation_.lasts()) add("a word of any member: this master may be cut off");
  switch (phase_) {
    case phase::forming:
      for (std::uint32_t id = 0; id < generations_.wanted(); ++id)
        if (!servers_.find(id)) add(fmt::format("server {} to join", id));
      if (options_.replicas && workers_.all_gone()) add("a worker to join");
      if (options_.replicas)
        for (auto const& [id, m] : workers_.all())
          if (!worlds_.has_entered(id, m.incarnation))
            add(fmt::format("worker {} to come to the next world", id));
      if (worlds_.asks() || (!options_.replicas && !point_ && !generations_.awaits_past()))
        add("a checkpoint to be found");
      break;
    case phase::configuring:
      for (auto const& [id, m] : servers_.all())
        if (!generations_.has_state(id))
          add(fmt::format("server {} to take the state of generation {}", id, generation_));
      break;
    case phase::running:
    case phase::closing:
      if (workers_.all_gone()) add("a worker to join");
      if (tasks_) add(detail::oldest_of(*tasks_, "a", now));
      if (evaluation_.active()) add(detail::oldest_of(*evaluation_.active(), "an evaluation", now));
      if (phase_ == phase::closing && !last_version_) add("the last version to be told");
      if (auto const& c = checkpoints_.current())
        add(fmt::format("the checkpoint of version {} to be written", c->version));
      if (all.empty())
        add(fmt::format("{}, of which none asks for a task", counted(workers_.all().size(), "worker")));
      break;
    case phase::finished:
      add("the trained model to be taken from where it is");
      break;
    case phase::suspended:
    case phase::failed:
      break;
  }
  return all;
}

}  // namespace edl::master
