// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/server/job_processes.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::chrono::seconds goodbye{30};  // grace for a process that is asked to leave

inline exit_kind kind_of(platform::ending const& e) {
  // A process that was stopped or killed from outside, or that gave up waiting for the master, is not at
  // fault. A crash is a fault, and so is lack of memory: a successor would end the same way.
  bool const from_outside = e.stop_requested || e.outside || e.code == platform::gave_up_waiting ||
                            e.code == platform::bad_machine || (e.signal == SIGKILL && !e.memory) ||
                            e.signal == SIGTERM || (e.signal == 0 && e.code == 0);
  return from_outside ? exit_kind::preempted : exit_kind::failed;
}

}  // namespace detail

EDL_INLINE job_processes::job_processes(server_options const& options, decision_loop& loop,
                                        std::function<void(bool any)> adopted, logger log)
    : options_(options),
      loop_(loop),
      coordinator_(loop.decisions()),
      adopted_(std::move(adopted)),
      log_(std::move(log)),
      adopting_(adopted_ != nullptr) {}

// ---- The coordinator's orders ----

EDL_INLINE void job_processes::execute(replace_process const& c) {
  if (!platform_ || over_) return;
  platform_->stop({c.role, c.id}, std::chrono::milliseconds(0));
  start({c.role, c.with}, c.id);
}

EDL_INLINE void job_processes::execute(start_process const& c) {
  if (over_) return;
  if (platform_) return start({c.role, c.id}, c.instead_of);
  log_.info(fmt::format("start {} {}: the roles of this job are started by hand, this one with {}={}",
                        c.role == role::server ? "server" : "worker", c.id,
                        c.role == role::server ? "EDL_ROLE=ps PS_ID" : "EDL_ROLE=worker WORKER_ID", c.id));
}

EDL_INLINE void job_processes::execute(stop_process const& c) {
  if (platform_) platform_->stop({c.role, c.id}, detail::goodbye);
}

EDL_INLINE void job_processes::execute(avoid_place const& c) { avoid({role::worker, c.worker}, c.why); }

EDL_INLINE void job_processes::execute(evade_place const& c) {
  if (platform_) platform_->evade({c.role, c.id}, c.why);
}

EDL_INLINE void job_processes::avoid(process_id who, std::string const& why) {
  if (!platform_) return;
  if (std::string const place = platform_->avoid(who, why); !place.empty()) loop_.avoids(place);
}

EDL_INLINE void job_processes::start(process_id who, std::optional<std::uint32_t> instead_of) {
  if (coordinator_.suspending()) return;  // it would have to leave at once
  started_.insert(who);
  platform_->start(who, instead_of);
}

// ---- The platform's reports ----

EDL_INLINE void job_processes::ended(platform::ending const& how, std::uint64_t number) {
  // A server killed for its replacement already has a successor: its end needs no action.
  if (how.stop_requested && how.who.role == role::server && !over_) return;
  if (adopting_) return;  // earlier ends are not this master's doing
  if (!over_ && how.failed()) log_.warning(fmt::format("{} {}", to_string(how.who), describe(how)));
  if (!over_ && how.code == platform::bad_machine) avoid(how.who, describe(how));
  loop_.dealt_with(number);
  // A job that was stopped in the middle of its tasks needs no process, nor one whose successor is starting.
  if (over_ || loop_.starts(how.who)) return;
  coordinator_.exited(how.who.role, how.who.id, options_.relaunch ? detail::kind_of(how) : exit_kind::failed,
                      describe(how), clock::now());
  loop_.run_commands();
}

EDL_INLINE void job_processes::leaving(process_id who, std::string const& why) {
  if (!options_.relaunch || adopting_ || over_) return;
  coordinator_.leaving(who.id, why);
  loop_.run_commands();
}

EDL_INLINE void job_processes::pressed(std::map<std::uint32_t, std::string> const& workers) {
  coordinator_.pressed(workers);
}

EDL_INLINE void job_processes::moving(std::map<std::uint32_t, std::string> const& workers) {
  coordinator_.moving(workers);
}

// When a job starts, nothing runs. A successor of a master starts and stops what its predecessor could not.
// It may know nothing from its predecessor but the running processes.
EDL_INLINE void job_processes::found(platform::findings const& what) {
  if (std::exchange(adopting_, false)) {
    adopted_(!what.running.empty());
    coordinator_.adopt(what, clock::now());
    loop_.run_commands();
  }
  // A successor of this master would have to know which processes it starts.
  loop_.when_kept([this, running = what.running] { reconcile(running); });
}

EDL_INLINE void job_processes::reconcile(std::vector<process_id> const& running) {
  if (over_) return;
  persisted_state const now = coordinator_.remembered();
  auto const reconcile = [&](role of, lineages::record const& lines) {
    std::set<process_id> wanted;
    for (auto const& line : lines.lines)
      if (!line.ended) wanted.insert({of, line.id});
    for (process_id const who : running)
      if (who.role == of && !wanted.contains(who)) platform_->stop(who, detail::goodbye);
    for (process_id const who : wanted)
      if (!started_.contains(who) && !loop_.starts(who) && std::ranges::find(running, who) == running.end())
        start(who);
  };
  reconcile(role::server, now.servers);
  reconcile(role::worker, now.workers);
}

EDL_INLINE std::string job_processes::scale(platform::size_request const& wanted) {
  std::string refused = coordinator_.scale(wanted, clock::now());
  loop_.run_commands();
  return refused;
}

EDL_INLINE void job_processes::suspend() {
  coordinator_.suspend(clock::now());
  loop_.run_commands();
}

// ---- Processes that leave, and the end ----

EDL_INLINE std::vector<process_id> job_processes::left() {
  std::vector<process_id> all(late_.begin(), late_.end());
  for (std::uint32_t const id : coordinator_.workers().left()) all.push_back({role::worker, id});
  for (std::uint32_t const id : coordinator_.servers().left()) all.push_back({role::server, id});
  return all;
}

EDL_INLINE void job_processes::end(job_end how) {
  if (!std::exchange(over_, true)) end_.set_value(std::move(how));
}

}  // namespace edl::master
