// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/master/roster.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::uint64_t newest_generation = std::uint64_t{1} << 62;

// The pause before a replacement. Each failure of a lineage after its second doubles it.
inline constexpr std::chrono::seconds crash_pause{1};

}  // namespace detail

EDL_INLINE roster::roster(job_options const& options, job_state& job)
    : options_(options),
      job_(job),
      workers_(options.silence, options.hang),
      servers_(options.silence),
      worker_lines_({.count = options.num_workers,
                     .budget = options.worker_failures,
                     .closed = options.starts_all,
                     .grace = options.exit_grace,
                     .pause = detail::crash_pause}),
      server_lines_({.count = options.num_servers,
                     .budget = options.server_failures,
                     .same_id = true,
                     .grace = options.exit_grace,
                     .pause = detail::crash_pause}),
      isolation_(options.silence, options.isolation) {}

EDL_INLINE void roster::resume(persisted_state const& before, time_point now) {
  worker_lines_ = lineages(worker_lines_.of(), before.workers, now);
  server_lines_ = lineages(server_lines_.of(), before.servers, now);
}

// ---- Members ----

// If people start the servers, a superfluous one that no master has ever known is their mistake. A stopped
// server may not know that it had joined, and its id may be required again by now.
EDL_INLINE bool roster::spare(join_request const& r, std::uint32_t servers) const {
  if (r.role != role::server) return false;
  return stopped_servers_.contains({r.id, r.incarnation}) ||
         (r.id >= servers && r.ranges.empty() && !stand_ins_.contains(r.id) &&
          (options_.starts_all || r.heard > 0));
}

EDL_INLINE std::string roster::refusal(join_request const& r, std::uint32_t servers) const {
  // A superfluous server that has ranges may join, as a source from which others copy them.
  if (r.role == role::server && r.id >= servers && r.ranges.empty() && !stand_ins_.contains(r.id))
    return fmt::format("the job has {}, give --num_ps_pods={}", counted(servers, "server"),
                       r.id + std::uint64_t{1});
  if (r.role == role::worker && r.id >= most_workers) return "its id is out of range";
  if (r.heard > detail::newest_generation) return "the generation that it knows of is out of range";
  if (layout_ && *layout_ != r.layout)
    return fmt::format(
        "its model (layout {:016x}) is not the job's (layout {:016x}): start all from one image", r.layout,
        *layout_);
  for (std::string const& flag : r.flags)
    if (std::ranges::find(options_.flags, flag) == options_.flags.end())
      return fmt::format("it was started with {}, and the job with {}: give all processes the same",
                         printable(flag, 64), fmt::join(options_.flags, " "));
  if (of(r.role).check(r.id, r.incarnation) == membership::standing::given_up)
    return "it has been given up: start a new process";
  return {};
}

EDL_INLINE void roster::join(join_request const& r, time_point now) {
  layout_ = r.layout;
  members(r.role).join(r.id, r.incarnation, r.addresses, now, r.kind);
  lines_of(r.role).joined(r.id);
  invariant(of(r.role).known(r.id, r.incarnation), "a process that has joined is a member");
}

EDL_INLINE bool roster::complete(role r) const {
  auto const all = lines(r).now().lines;
  return std::ranges::all_of(all, [&](auto const& l) { return l.ended || of(r).find(l.id); });
}

EDL_INLINE roster::pulse roster::heartbeat(role of, std::uint32_t id, std::uint64_t incarnation,
                                           vitals const& v, time_point now) {
  membership& all = members(of);
  member const* const before = all.find(id);
  std::uint64_t const records = before ? before->last.records : 0,
                      position = before ? before->last.position : 0;
  pulse p{.reply = {.known = all.heartbeat(id, incarnation, v, now), .finished = job_.over()}};
  if (p.reply.known) {
    p.trained = v.records > records;
    minibatches_ += p.trained || (before && v.position > position);
  } else {
    p.reply.stranger = all.check(id, incarnation) == membership::standing::fresh;
    p.reply.spare = of == role::server && stopped_servers_.contains({id, incarnation});
  }
  return p;
}

EDL_INLINE void roster::lose(role of, std::uint32_t id, time_point now) {
  membership& all = members(of);
  invariant(all.find(id) != nullptr, "only a member can be lost");
  all.lose(id, all.find(id)->incarnation, now);
  lines_of(of).lost(id, now);
}

EDL_INLINE void roster::replace(role of, std::uint32_t id) {
  if (auto const r = lines_of(of).given_up(id)) replace(of, *r);
}

EDL_INLINE void roster::replace(role of, lineages::replacement const& r) {
  job_.say(severity::info,
           r.id == r.with ? fmt::format("{} {} is started again", in_words(of), r.id)
                          : fmt::format("{} {} is started to replace {}", in_words(of), r.with, r.id),
           topic::replaced);
  job_.add(replace_process{of, r.id, r.with});
}

EDL_INLINE std::string roster::ended(role of, std::uint32_t id, exit_kind kind, std::string const& why,
                                     time_point now) {
  lineages& all = lines_of(of);
  std::size_t const ended = all.ended();
  std::uint64_t const before = all.changes();
  if (auto const r = all.exited(id, kind, why, now)) {
    replace(of, *r);
    return {};
  }
  if (auto const pause = all.pauses(id); pause && all.changes() > before) {
    job_.say(severity::warning,
             fmt::format("{} {} failed again; a replacement starts in {} s: {}", in_words(of), id,
                         std::chrono::duration_cast<std::chrono::seconds>(*pause).count(), why),
             topic::waiting);
    return {};
  }
  if (all.ended() == ended) return {};
  job_.say(severity::error,
           fmt::format("{} {} failed too often and is not replaced: {}", in_words(of), id, why), topic::lost);
  if (of == role::server) return fmt::format("server {} failed too often: {}", id, all.reason());
  if (all.all_ended() && workers_.all_gone()) return fmt::format("all workers failed: {}", all.reason());
  return {};
}

EDL_INLINE void roster::leaving(std::uint32_t worker, std::string const& why) {
  if (auto const r = worker_lines_.exited(worker, exit_kind::preempted, why)) {
    job_.say(severity::info, fmt::format("worker {} is about to leave: it {}", worker, why), topic::left);
    job_.add(start_process{role::worker, r->with, r->id});
  }
}

// ---- Time ----

EDL_INLINE void roster::excuse(duration pause, time_point now) {
  workers_.excuse(pause, now);
  servers_.excuse(pause, now);
}

EDL_INLINE std::optional<duration> roster::excuse(time_point now) {
  if (duration const pause = now - last_tick_.value_or(now); pause > options_.silence / 2) {
    excuse(pause, now);
    isolation_.held_up(pause, now);
  }
  last_tick_ = now;
  std::optional<time_point> newest;
  for (membership const* const all : {&workers_, &servers_})
    for (auto const& [id, m] : all->all()) newest = std::max(newest.value_or(m.seen), m.seen);
  auto const found = isolation_.look(newest, size(), now);
  if (found.absence) {
    excuse(*found.absence, now);
    job_.say(severity::info, fmt::format("members are heard again after {:.1f} s; their silence in between "
                                         "does not count as a failure",
                                         std::chrono::duration<double>(*found.absence).count()));
  }
  if (found.began)
    job_.say(severity::warning,
             fmt::format("no member has been heard for {:.1f} s: this master may be cut off, and gives up no "
                         "member for up to {} s",
                         std::chrono::duration<double>(isolation_.quiet(now)).count(),
                         std::chrono::duration_cast<std::chrono::seconds>(options_.isolation).count()),
             topic::waiting);
  return found.absence;
}

EDL_INLINE std::vector<member> roster::silent(role r, time_point now) const {
  if (cut_off(now)) return {};
  auto all = of(r).silent(now);
  std::erase_if(all, [&](member const& m) { return isolation_.finds_back(m.seen, now); });
  return all;
}

EDL_INLINE void roster::replace_overdue(role of, time_point now) {
  for (auto const& r : lines_of(of).overdue(now)) replace(of, r);
}

// ---- Size ----

EDL_INLINE void roster::scale_workers(std::uint32_t wanted, std::vector<std::uint32_t> const& leave,
                                      std::string const& why) {
  std::size_t const before = worker_lines_.size();
  for (std::uint32_t const id : leave)
    if (worker_lines_.drop(id)) job_.add(stop_process{role::worker, id});
  while (worker_lines_.size() < wanted) job_.add(start_process{role::worker, worker_lines_.add()});
  while (worker_lines_.size() > wanted) job_.add(stop_process{role::worker, worker_lines_.drop_newest()});
  job_.say(severity::info,
           fmt::format("Scaling from {} to {}{}{}", before, counted(wanted, "worker"),
                       why.empty() ? "" : ": ", why),
           topic::resized);
}

// Superfluous servers become sources of their ranges again. They are stopped once all ranges are elsewhere.
EDL_INLINE void roster::scale_servers(std::uint32_t wanted) {
  while (server_lines_.size() < wanted) {
    // A server that was to leave but is still a source stays: an order to start it would wait for its end.
    std::uint32_t const id = server_lines_.add();
    if (!servers_.find(id)) job_.add(start_process{role::server, id});
  }
  while (server_lines_.size() > wanted) server_lines_.drop_newest();
}

EDL_INLINE void roster::stop_server(std::uint32_t id, time_point now) {
  job_.say(severity::info, fmt::format("server {} is not needed any more", id));
  stopped_servers_.emplace(id, servers_.find(id)->incarnation);
  lose(role::server, id, now);
  stand_ins_.erase(id);
  server_lines_.drop(id);
  job_.add(stop_process{role::server, id});
}

EDL_INLINE void roster::start_stand_in(std::uint32_t server) {
  if (!stand_ins_.empty()) return;
  std::uint32_t const id = server_lines_.add();
  stand_ins_.insert(id);
  job_.say(severity::info, fmt::format("server {} is started to stand in for {}", id, server),
           topic::replaced);
  job_.add(start_process{role::server, id});
}

EDL_INLINE void roster::recall_stand_ins() {
  std::erase_if(stand_ins_, [&](std::uint32_t id) {
    if (servers_.find(id)) return false;
    server_lines_.drop(id);
    job_.add(stop_process{role::server, id});
    return true;
  });
}

EDL_INLINE void roster::move_server(std::uint32_t id, time_point now) {
  stopped_servers_.emplace(id, servers_.find(id)->incarnation);
  lose(role::server, id, now);
  replace(role::server, id);
}

EDL_INLINE void roster::adopt(platform::findings const& those, std::uint32_t servers, time_point now) {
  auto const running_workers = those.ids(role::worker), running_servers = those.ids(role::server);
  auto const found = [&](lineages const& like, std::vector<std::uint32_t> const& ids, std::uint32_t next) {
    lineages::record r{.next = next, .lines = {}};
    for (std::uint32_t const id : ids) r.lines.push_back({id, 0, false});
    // A process that does not join within the timeout is replaced.
    return lineages(like.of(), r, now + options_.adoption - like.of().grace);
  };
  if (!running_workers.empty()) {
    auto const newest = *std::ranges::max_element(running_workers);
    worker_lines_ = found(worker_lines_, running_workers, std::max(those.next_worker, newest + 1));
    while (worker_lines_.size() < options_.num_workers) worker_lines_.add();
  }
  if (!running_servers.empty() && options_.num_servers > 0) {
    server_lines_ = found(server_lines_, running_servers, 0);
    for (std::uint32_t id = 0; id < servers; ++id)
      if (std::ranges::find(running_servers, id) == running_servers.end()) server_lines_.joined(id);
  }
  job_.say(severity::info,
           fmt::format("this master has no journal: it goes on with {} and {} that it finds running",
                       counted(running_workers.size(), "worker"), counted(running_servers.size(), "server")));
}

}  // namespace edl::master
