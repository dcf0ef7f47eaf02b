// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {

EDL_INLINE void coordinator::void_leases() {
  phase_ = phase::forming;
  speeds_.interrupted();
  generations_.begin_again();
  training_first_.clear();
  auto frozen = checkpoints_.clear();
  if (auto const waiting = std::exchange(unjudged_, std::nullopt)) frozen.push_back(*waiting);
  if (options_.replicas) worlds_.not_written(frozen);
  last_version_.reset();
  point_.reset();
  if (tasks_) tasks_->recover_all();
  evaluation_.recover_all();
}

// Those who keep the model come or go: a next generation of servers, or a next world of workers, goes on with
// what they have.
EDL_INLINE void coordinator::regroup(time_point now) {
  options_.replicas ? regroup_workers(now) : regroup_servers(now);
}

EDL_INLINE void coordinator::keeper_joined(join_request const& r, time_point now) {
  options_.replicas ? regroup_workers(now) : server_joined(r, now);
}

EDL_INLINE void coordinator::find_point() {
  if (trains())
    commands_.emplace_back(find_restore_point{generation_});
  else
    point_ = options_.start;  // nothing is applied: the model is what it was, and what is done stays done
}

EDL_INLINE std::set<std::uint32_t> coordinator::servers_there() const {
  std::set<std::uint32_t> ids;
  for (auto const& [id, m] : servers_.all()) ids.insert(id);
  return ids;
}

EDL_INLINE void coordinator::server_lost(std::uint32_t id, time_point now) {
  generations_.lost(id);
  if (phase_ != phase::forming) regroup_servers(now);
}

EDL_INLINE void coordinator::server_joined(join_request const& r, time_point now) {
  bool const forming = phase_ == phase::forming;
  // Servers have a newer state than this master knows of: they go on with that, as after any master.
  if (generations_.joined(r.id, r.held, r.ranges, forming)) {
    recovered_ = true;
    point_.reset();
  }
  if (!forming)
    regroup_servers(now);
  else if (generations_.awaits_past())
    recover_servers(now);
  else
    configure_if_complete();
}

// Servers come or go: the state that they have goes on, or all go back to a checkpoint.
EDL_INLINE void coordinator::regroup_servers(time_point now) {
  if (!stood_since_ && leasing()) stood_since_ = now;
  bool const whole = generations_.whole(servers_there());
  ++generation_;
  void_leases();
  if (!whole) {
    generations_.forget();
    return find_point();
  }
  evaluation_.forget_unless([](std::uint64_t) { return false; });
  generations_.keep(true);
  configure();
}

// A master that takes another's place waits a moment for all servers, and goes on if nothing is lost.
EDL_INLINE void coordinator::recover_servers(time_point now) {
  if (phase_ != phase::forming) return;
  switch (generations_.look_at_past(servers_there(), now)) {
    case server_generations::past_state::intact:
      return configure();
    case server_generations::past_state::gone:
      find_point();
      return configure_if_complete();
    case server_generations::past_state::none:
    case server_generations::past_state::awaited:
      return;
  }
}

EDL_INLINE void coordinator::restore_point_found(std::uint64_t generation, std::optional<restore_point> point,
                                                 time_point now) {
  if (generation != generation_ || phase_ != phase::forming || point_) return;
  if (options_.replicas && !worlds_.found()) return;
  go_back_to(point ? *std::move(point) : options_.start, now);
}

EDL_INLINE void coordinator::go_back_to(restore_point point, time_point now) {
  std::uint64_t const before = tasks_ ? tasks_->done().records_done : 0;
  if (trains()) try {
      restore_tasks(point.version, point.applied);
    } catch (error const& e) {
      return fail(fmt::format("cannot go back to '{}': {}", point.directory, e.what()));
    }
  bool const copied = options_.replicas && worlds_.has_copy();
  if (copied)
    evaluation_.forget_after(point.version);  // what is older is frozen on its survivors
  else
    evaluation_.roll_back(point.version);
  // A copy's version is told again; that of a checkpoint was judged before it was written.
  announced_ = point.version - std::uint64_t(copied && point.version > 0);
  if (!options_.replicas) epochs_said_ = 0;
  version_ = point.version;
  checkpoints_.go_back_to(point.version);
  if (bool const lossless = options_.replicas && (!tasks_ || tasks_->done().records_done >= before);
      !lossless)
    say(severity::warning, fmt::format("Going back to version {}, {} done", point.version,
                                       counted(tasks_->done().records_done, "record")));
  point_ = std::move(point);
  options_.replicas ? begin_world(now) : configure_if_complete();
}

EDL_INLINE void coordinator::configure_if_complete() {
  bool const all = servers_.all().size() >= generations_.wanted();
  if (phase_ != phase::forming || generations_.awaits_past() || !point_ || !all) return;
  generations_.keep(false);
  configure();
}

EDL_INLINE void coordinator::configure() {
  phase_ = phase::configuring;
  commands_.emplace_back(
      generations_.configure(generation_, servers_there(), point_ ? point_->directory : std::string()));
}

EDL_INLINE void coordinator::server_configured(std::uint32_t id, std::uint64_t incarnation,
                                               std::uint64_t generation, std::string const& error,
                                               time_point now, std::optional<copy_position> kept) {
  if (generation != generation_ || phase_ != phase::configuring || !servers_.known(id, incarnation)) return;
  if (!error.empty())
    return fail(fmt::format("server {} cannot take the state of '{}': {}", id,
                            generations_.keeping() ? "the others" : point_->directory, error));
  servers_.seen(id, incarnation, now);
  if (!generations_.configured(id, std::move(kept), servers_there())) return;
  if (auto state = generations_.take_kept()) go_on_from(*std::move(state));
  stop_spare_servers(now);
  if (!over()) begin(now);
}

EDL_INLINE void coordinator::go_on_from(copy_position kept) {
  if (trains()) try {
      restore_tasks(kept.version, kept.applied);
    } catch (error const& e) {
      return fail(fmt::format("cannot go on from the servers' state: {}", e.what()));
    }
  version_ = kept.version;
  point_ = restore_point{"", kept.version, std::move(kept.applied)};
  say(severity::info, fmt::format("{} at version {}, {} done", suspending_ ? "Stopping" : "Going on",
                                  version_, counted(tasks_ ? tasks_->done().records_done : 0, "record")));
}

EDL_INLINE void coordinator::server_ahead(std::uint32_t id, std::uint64_t incarnation,
                                          std::uint64_t generation, time_point now) {
  if (generation != generation_ || phase_ != phase::configuring || !servers_.known(id, incarnation)) return;
  say(severity::warning, fmt::format("server {} knows a newer generation than {}: its journal was lost or is "
                                     "an older one; the job goes on above that",
                                     id, generation));
  generation_ += generations_.leap();  // by how much it is ahead nobody says
  regroup_servers(now);
}

EDL_INLINE void coordinator::backup_cut_off(std::uint32_t server, std::uint64_t generation,
                                            std::uint32_t range, time_point now) {
  bool const serves =
      generation == generation_ && range < places().size() && places()[range].primary == server;
  if (over() || !serves || !places()[range].backup) return;
  if (std::uint32_t const backup = *places()[range].backup; servers_.find(backup))
    lose(role::server, backup, fmt::format("server {} cannot reach it", server), now);
}

EDL_INLINE void coordinator::begin(time_point now) {
  phase_ = phase::running;
  if (auto const since = std::exchange(stood_since_, std::nullopt)) standstill_ = now - *since;
  if (options_.type == job_type::evaluation_only && evaluation_.idle())
    evaluation_.version_reached({point_->version, false}, now);
  advance();
}

}  // namespace edl::master
