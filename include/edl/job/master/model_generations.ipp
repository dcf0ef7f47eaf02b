// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/model_generations.hpp"

namespace edl::master {

EDL_INLINE model_generations::model_generations(job_options const& options, job_state& job, roster& members,
                                                model_versions& versions, dispatcher& tasks,
                                                worker_worlds& worlds, std::uint64_t past, time_point now)
    : options_(options),
      job_(job),
      members_(members),
      versions_(versions),
      tasks_(tasks),
      worlds_(worlds),
      servers_({.wanted = options.num_servers,
                .ranges = options.ranges ? options.ranges : options.num_servers,
                .copies = options.server_copies,
                .gathering = options.gathering},
               options.num_servers > 0 ? past : 0, now),
      point_(options.start),
      newest_written_(options.start.at()) {
  worlds_.expect(options.num_workers);
}

EDL_INLINE void model_generations::resume(persisted_state const& before) {
  job_.raise_generation(in_epoch(options_.epoch, before.generation + 1));
  worlds_.expect(before.members);
  servers_.want(before.wanted_servers);
  if (before.evaluated) versions_.evaluations().resume_after(*before.evaluated);
  newest_good_ = before.undo;
  worlds_.void_copies_until(before.void_until);
  point_.reset();
  recovered_ = true;
}

EDL_INLINE void model_generations::adopt(platform::findings const& those) {
  recovered_ = true;
  auto const running_servers = those.ids(role::server);
  if (std::size_t const n = those.running.size() - running_servers.size()) worlds_.expect(std::uint32_t(n));
  if (running_servers.empty() || options_.num_servers == 0) return;
  std::uint32_t const newest = *std::ranges::max_element(running_servers);
  servers_.want(std::min(std::max(options_.num_servers, newest + 1), servers_.ranges()));
}

EDL_INLINE void model_generations::want_servers(std::uint32_t wanted, time_point now) {
  std::uint32_t const before = servers_.wanted();
  servers_.want(wanted);
  // No server need join if one that was to leave stays.
  bool const stays =
      std::ranges::any_of(servers_there(), [&](std::uint32_t id) { return id >= before && id < wanted; });
  if (wanted < before || stays) job_.forming() ? configure_if_complete() : regroup_servers(now);
}

EDL_INLINE std::set<std::uint32_t> model_generations::servers_there() const {
  std::set<std::uint32_t> ids;
  for (auto const& [id, m] : members_.servers().all()) ids.insert(id);
  return ids;
}

// ---- The model's keepers join and leave ----

EDL_INLINE void model_generations::interrupt() {
  job_.enter(job_phase::forming);
  servers_.begin_again();
  point_.reset();
  versions_.interrupt();
  tasks_.interrupt();
}

// A generation that a joining member knows has existed, whatever this master remembers. The same number must
// not denote two states, so the next generation is above it.
EDL_INLINE void model_generations::rise_above(join_request const& r, time_point now) {
  if (r.heard < job_.generation() || r.heard == 0) return;
  job_.say(severity::warning,
           fmt::format("{} {} knows generation {}, this master only {}: its journal was lost or is older; "
                       "the job goes on with a later generation",
                       in_words(r.role), r.id, count_of(r.heard), count_of(job_.generation())));
  job_.raise_generation(r.heard);
  if (job_.forming()) {
    job_.begin_generation();
    if (!options_.replicas && !point_ && !servers_.awaits_past())
      find_point();  // the earlier request was for the previous generation
  } else if (!keeps_model(r.role) && options_.num_servers > 0)
    regroup_servers(now);  // a keeper of the model regroups when it joins
}

EDL_INLINE std::optional<std::uint32_t> model_generations::joined(join_request const& r, time_point now) {
  if (!keeps_model(r.role)) return std::nullopt;
  if (options_.replicas && r.may_follow) worlds_.can_follow(r.id);
  if (options_.replicas && r.follows && worlds_.follow(r.id, members_.workers())) return std::nullopt;
  if (options_.replicas) return regroup_workers(now);
  bool const forming = job_.forming();
  // The servers have a newer state than this master knows: continue from it, as after a master's loss.
  if (servers_.joined(r.id, {r.held, r.version}, r.ranges, forming)) {
    recovered_ = true;
    point_.reset();
  }
  if (!forming)
    regroup_servers(now);
  else if (servers_.awaits_past())
    recover_servers(now);
  else
    configure_if_complete();
  return std::nullopt;
}

EDL_INLINE std::optional<std::uint32_t> model_generations::worker_lost(std::uint32_t id, time_point now) {
  if (!options_.replicas) return std::nullopt;
  bool const followed = worlds_.follows(id);
  worlds_.left(id);
  return followed && !job_.forming() ? std::nullopt : regroup_workers(now);
}

EDL_INLINE std::optional<std::uint32_t> model_generations::leave_out_missed(time_point now) {
  // Nobody waits for a step while the last version is saved.
  if (!options_.replicas || job_.phase() != job_phase::running || job_.suspending()) return std::nullopt;
  // The step is repeated, so a short silence must not cost a long one.
  double step = 0;  // seconds
  for (auto const& [id, m] : members_.workers().all())
    step = std::max(step, double(m.last.pass) * double(options_.minibatch_size));
  auto const patience =
      std::max(options_.patience,
               std::chrono::duration_cast<duration>(std::chrono::duration<double>(std::min(step, 60.0))));
  bool any = false;
  for (std::uint32_t const id : worlds_.missed(members_.workers(), patience, now))
    if (worlds_.leave_out(id, members_.workers())) {
      any = true;
      auto const silent = std::chrono::duration<double>(now - members_.workers().find(id)->seen);
      job_.say(
          severity::info,
          fmt::format("worker {} has not been heard for {:.1f} s, and the others wait for it: they go on "
                      "without it",
                      id, silent.count()));
    }
  return any ? regroup_workers(now) : std::nullopt;
}

EDL_INLINE void model_generations::server_lost(std::uint32_t id, time_point now) {
  servers_.lost(id);
  if (!job_.forming()) regroup_servers(now);
}

// A server that is awaited will do, too.
EDL_INLINE void model_generations::vacate(std::uint32_t server, time_point now) {
  if (!servers_.vacate(server, servers_there())) {
    if (servers_.all_there(servers_there())) members_.start_stand_in(server);
  } else if (!job_.forming()) {
    regroup_servers(now);
  }
}

EDL_INLINE std::optional<std::uint32_t> model_generations::regroup(time_point now) {
  if (options_.replicas) return regroup_workers(now);
  regroup_servers(now);
  return std::nullopt;
}

// The copies of the model, or the servers' state, are wrong after version `good`: discards them.
EDL_INLINE std::optional<std::uint32_t> model_generations::undo(std::uint64_t good, time_point now) {
  if (!job_.leasing()) return std::nullopt;
  newest_good_ = good;
  if (options_.replicas) {
    worlds_.void_copies();
    return regroup_workers(now);
  }
  if (!stood_since_) stood_since_ = now;
  job_.begin_generation();
  interrupt();
  servers_.forget();
  find_point();
  return std::nullopt;
}

// ---- Servers ----

EDL_INLINE void model_generations::find_point() {
  if (options_.trains())
    job_.add(find_restore_point{job_.generation(), newest_good_});
  else
    point_ = options_.start;  // nothing is applied: the model is unchanged, and completed tasks stay so
}

// Continues from the servers' state if it is whole; otherwise all of them return to a checkpoint.
EDL_INLINE void model_generations::regroup_servers(time_point now) {
  if (!stood_since_ && job_.leasing()) stood_since_ = now;
  bool const whole = servers_.whole(servers_there());
  job_.begin_generation();
  interrupt();
  if (!whole) {
    servers_.forget();
    return find_point();
  }
  versions_.evaluations().forget_unless([](std::uint64_t) { return false; });
  servers_.keep(true);
  configure();
}

// Waits a moment for all servers of the previous master, and continues from their state if it is complete.
EDL_INLINE void model_generations::recover_servers(time_point now) {
  if (!job_.forming()) return;
  position const held = servers_.past();
  switch (servers_.look_at_past(servers_there(), newest_written_, now)) {
    case server_generations::past_state::intact:
      return configure();
    case server_generations::past_state::gone:
      if (held.behind(newest_written_))
        job_.say(severity::warning, fmt::format("the servers have version {} of a superseded history; the "
                                                "job goes on from the checkpoint of version {}",
                                                held.version, newest_written_.version));
      find_point();
      return configure_if_complete();
    case server_generations::past_state::none:
    case server_generations::past_state::awaited:
      return;
  }
}

EDL_INLINE void model_generations::configure_if_complete() {
  bool const all = servers_.all_there(servers_there());
  if (!job_.forming() || servers_.awaits_past() || !point_ || !all) return;
  servers_.keep(false);
  configure();
}

EDL_INLINE void model_generations::configure() {
  invariant(job_.forming(), "servers are configured once in a generation");
  job_.enter(job_phase::configuring);
  job_.add(
      servers_.configure(job_.generation(), servers_there(), point_ ? point_->directory : std::string()));
}

EDL_INLINE void model_generations::server_configured(std::uint32_t id, std::string const& error,
                                                     std::optional<copy_position> kept, time_point now) {
  if (!error.empty())
    return job_.fail(fmt::format("server {} cannot take the state of '{}': {}", id,
                                 servers_.keeping() ? "the others" : point_->directory, error));
  if (!servers_.configured(id, std::move(kept), servers_there())) return;
  if (auto state = servers_.take_kept()) go_on_from(*std::move(state));
  stop_spare_servers(now);
  move_vacant_servers(now);
  if (!job_.over()) begin(now);
}

EDL_INLINE void model_generations::go_on_from(copy_position kept) {
  try {
    tasks_.go_on_from(kept.version, kept.applied);
  } catch (error const& e) {
    return job_.fail(fmt::format("cannot go on from the servers' state: {}", e.what()));
  }
  versions_.go_on_from(kept.version);
  point_ = restore_point{"", kept.version, std::move(kept.applied)};
  job_.say(severity::info,
           fmt::format("{} at version {}, {} done", job_.suspending() ? "Stopping" : "Going on", kept.version,
                       counted(tasks_.records_done(), "record")),
           topic::recovery);
}

// A superfluous server that serves a range, because no other was present, stays until others have joined.
EDL_INLINE void model_generations::stop_spare_servers(time_point now) {
  for (std::uint32_t const id : servers_there()) {
    bool const serves = std::ranges::any_of(
        places(), [&](range_place const& p) { return p.primary == id || p.backup == id; });
    if (id >= servers_.wanted() && !serves) members_.stop_server(id, now);
  }
}

EDL_INLINE void model_generations::move_vacant_servers(time_point now) {
  for (std::uint32_t const id : servers_there())
    if (servers_.vacant(id)) {
      servers_.lost(id);
      members_.move_server(id, now);
    }
  if (!servers_.any_leaves() && servers_.all_there(servers_there())) members_.recall_stand_ins();
}

EDL_INLINE void model_generations::server_ahead(std::uint32_t id, time_point now) {
  job_.say(severity::warning, fmt::format("server {} knows a newer generation than {}: its journal was lost "
                                          "or is older; the job goes on with a later generation",
                                          id, count_of(job_.generation())));
  job_.raise_generation(job_.generation() + servers_.leap());  // the refusal does not tell how far ahead
  regroup_servers(now);
}

EDL_INLINE std::optional<std::uint32_t> model_generations::backup_of(std::uint32_t server,
                                                                     std::uint32_t range) const {
  bool const serves = range < places().size() && places()[range].primary == server;
  return serves ? places()[range].backup : std::nullopt;
}

// ---- Worlds ----

EDL_INLINE std::optional<std::uint32_t> model_generations::enter(std::uint32_t worker, entry e,
                                                                 time_point now) {
  bool const followed = worlds_.follows(worker);
  if (!job_.forming()) {
    if (e.last < job_.generation())
      return std::nullopt;  // a repeated request: the reply is the current world
    job_.say(severity::info, fmt::format("worker {} {} world {}{}", worker,
                                         followed ? "has followed" : "has left", count_of(job_.generation()),
                                         e.suspect ? fmt::format(": it misses worker {}", *e.suspect) : ""));
    regroup_workers(now);
  } else if (followed && e.last == 0 && worlds_.may_follow(worker, members_.workers())) {
    return std::nullopt;  // the reply is the next world, which it will follow
  } else if (followed) {
    regroup_workers(now);
  }
  if (e.copy && position{e.copy->world, e.copy->version}.behind(newest_written_)) {
    job_.say(severity::info, fmt::format("the copy of worker {}, of version {}, belongs to a superseded "
                                         "history: it does not count beside the checkpoint of version {}",
                                         worker, e.copy->version, newest_written_.version));
    e.copy.reset();
  }
  worlds_.enter(worker, std::move(e), now);
  return form_world(now);
}

EDL_INLINE world const* model_generations::world_of(std::uint32_t worker, std::uint64_t incarnation) const {
  bool const formed = options_.replicas && !job_.forming();
  return formed && members_.workers().known(worker, incarnation) ? &worlds_.current() : nullptr;
}

EDL_INLINE std::optional<std::uint32_t> model_generations::regroup_workers(time_point now) {
  if (job_.forming()) {
    point_.reset();  // a pending request for it is void
    worlds_.changed();
    return form_world(now);
  }
  if (!stood_since_) stood_since_ = now;
  job_.begin_generation();
  interrupt();
  worlds_.broke(now);
  return std::nullopt;
}

EDL_INLINE std::optional<std::uint32_t> model_generations::form_world(time_point now) {
  if (!job_.forming()) return std::nullopt;
  bool const restorable = options_.trains() && (recovered_ || !worlds_.none_yet());
  using enum worker_worlds::step::kind;
  switch (auto const next = worlds_.next(members_.workers(), restorable, now); next.action) {
    case wait:
      break;
    case give_up:
      return next.member;
    case go_on:
      go_back_to({"", next.newest->version, next.newest->applied}, now);
      break;
    case worker_worlds::step::kind::begin:
      go_back_to(options_.start, now);
      break;
    case find:
      job_.add(find_restore_point{job_.generation(), newest_good_});
  }
  return std::nullopt;
}

EDL_INLINE void model_generations::begin_world(time_point now) {
  world const before = worlds_.current();
  auto const is_new = [&](world::member const& m) {
    bool const was_in =
        before.number == 0 ||
        std::ranges::find(before.members, m.incarnation, &world::member::incarnation) != before.members.end();
    return worlds_.current().version > 0 && (!m.current || !was_in);
  };
  auto const unwritten =
      worlds_.begin(job_.generation(), members_.workers(), point_->version, point_->directory, now);
  versions_.evaluations().forget_unless([&](std::uint64_t version) { return worlds_.is_frozen(version); });
  for (std::uint64_t const version : unwritten) job_.add(release_frozen{version, false});
  world const& w = worlds_.current();
  std::string ids;
  for (auto const& m : w.members)
    ids += fmt::format("{}{}{}", ids.empty() ? "" : ", ", m.id, is_new(m) ? " (new)" : "");
  job_.say(severity::info,
           fmt::format("World {}: {} ({}) from version {}", count_of(w.number),
                       counted(w.members.size(), "worker"), ids, w.version),
           topic::world);
  begin(now);
}

EDL_INLINE std::vector<std::uint32_t> model_generations::absent(time_point now) const {
  if (!options_.replicas || !job_.forming() || worlds_.asks()) return {};
  // Suspension as a whole is limited, so absent workers may delay it for half of that.
  return worlds_.absent(members_.workers(), job_.suspending() ? options_.suspension / 2 : options_.absence,
                        now);
}

// ---- The generation begins ----

EDL_INLINE void model_generations::restore_point_found(std::optional<restore_point> point, time_point now) {
  if (!job_.forming() || point_) return;
  if (options_.replicas && !worlds_.found()) return;
  newest_good_.reset();
  if (!point) point = options_.start;
  newest_written_ = point->at();
  go_back_to(*std::move(point), now);
}

EDL_INLINE void model_generations::go_back_to(restore_point point, time_point now) {
  std::uint64_t const before = tasks_.records_done();
  try {
    tasks_.go_back_to(point.version, point.applied);
  } catch (error const& e) {
    return job_.fail(fmt::format("cannot go back to '{}': {}", point.directory, e.what()));
  }
  versions_.go_back_to(point.version, options_.replicas && worlds_.has_copy());
  if (!options_.replicas || tasks_.records_done() < before)
    job_.say(severity::warning,
             fmt::format("Going back to version {}, {} done", point.version,
                         counted(tasks_.records_done(), "record")),
             topic::recovery);
  point_ = std::move(point);
  options_.replicas ? begin_world(now) : configure_if_complete();
}

EDL_INLINE void model_generations::begin(time_point now) {
  invariant(!job_.leasing(), "a generation begins once");
  job_.enter(job_phase::running);
  newest_good_.reset();  // the rollback, if there was one, is complete
  if (auto const since = std::exchange(stood_since_, std::nullopt)) standstill_ = now - *since;
  if (options_.type == job_type::evaluation_only && versions_.evaluations().idle())
    versions_.evaluations().version_reached({point_->version, false}, now);
}

// ---- The end ----

EDL_INLINE bool model_generations::state_may_come(time_point now) const {
  if (versions_.checkpoints().current()) return true;  // the writing ends by itself
  if (now - *job_.suspending() > options_.suspension) return false;
  if (!job_.forming()) return true;
  bool const awaited = recovered_ && worlds_.none_yet() && !servers_.ever_configured();
  if (options_.replicas) return awaited || (!worlds_.none_yet() && !members_.workers().all_gone());
  return servers_.awaits_past() || awaited;
}

EDL_INLINE std::vector<std::string> model_generations::waits_for() const {
  std::vector<std::string> all;
  if (job_.phase() == job_phase::configuring)
    for (auto const& [id, m] : members_.servers().all())
      if (!servers_.has_state(id))
        all.push_back(
            fmt::format("server {} to take the state of generation {}", id, count_of(job_.generation())));
  if (!job_.forming()) return all;
  for (std::uint32_t id = 0; id < servers_.wanted(); ++id)
    if (!members_.servers().find(id)) all.push_back(fmt::format("server {} to join", id));
  if (options_.replicas && members_.workers().all_gone()) all.push_back("a worker to join");
  if (options_.replicas)
    for (auto const& [id, m] : members_.workers().all())
      if (!worlds_.has_entered(id, m.incarnation) && !worlds_.follows(id))
        all.push_back(fmt::format("worker {} to come to the next world", id));
  if (worlds_.asks() || (!options_.replicas && !point_ && !servers_.awaits_past()))
    all.push_back("a checkpoint to be found");
  return all;
}

}  // namespace edl::master
