// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <variant>

#include "edl/base/net/carry.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/server/decision_loop.hpp"

namespace edl::master {
namespace detail {

EDL_INLINE std::optional<process_id> started_by(command const& c) {
  if (auto const* const r = std::get_if<replace_process>(&c)) return process_id{r->role, r->with};
  if (auto const* const s = std::get_if<start_process>(&c)) return process_id{s->role, s->id};
  return std::nullopt;
}

EDL_INLINE std::optional<process_id> stopped_by(command const& c) {
  if (auto const* const s = std::get_if<stop_process>(&c)) return process_id{s->role, s->id};
  return std::nullopt;
}

}  // namespace detail

EDL_INLINE decision_loop::decision_loop(net::node& on, server_options const& o, logger log,
                                        std::function<void(command const&)> execute)
    : node_(on),
      judges_(o.job.judges),
      worlds_(o.job.replicas),
      execute_(std::move(execute)),
      coordinator_(o.job, clock::now(), o.before),
      announces_(on.executor()),
      keeps_(on.executor()),
      events_(o.before ? o.before->events : 0),
      avoided_(o.before ? o.before->avoided : std::vector<std::string>()),
      keeper_(on, o.journal, o.storage_pause, std::move(log), [this] { run_commands(); }) {}

EDL_INLINE void decision_loop::listens_at(std::vector<std::string> addresses) {
  addresses_ = std::move(addresses);
  remembered_.reset();
  run_commands();
}

// Worlds change often, every worker waits for the next one, and disks are slow. So the journal reserves
// generations ahead of the current one.
EDL_INLINE std::uint64_t decision_loop::kept_ahead(std::uint64_t generation) const {
  constexpr std::uint64_t at_once = 16;
  return worlds_ ? (generation + at_once - 1) / at_once * at_once : generation;
}

// Others learn of a generation, a replacement's number, an address of the master or a rollback only once a
// successor of this master would know it, too. Everything else is written eventually.
EDL_INLINE void decision_loop::remember() {
  auto const [generation, members, servers, worker_lines, server_lines, evaluated, finished, undo, good] =
      coordinator_.remembers();
  // The list of evaluations records what has been judged, too.
  std::uint64_t const ahead = kept_ahead(generation);
  remembered const now{{ahead, servers, worker_lines, server_lines, finished, undo},
                       {members, events_, judges_ ? 0 : evaluated, good, avoided_.size()}};
  if (remembered_ == now) return;
  bool const promised = !remembered_ || remembered_->promised != now.promised;
  remembered_ = now;
  persisted_state all = coordinator_.remembered();
  all.generation = ahead;
  all.events = events_;
  all.addresses = addresses_;
  all.avoided = avoided_;
  keeper_.keep(std::move(all), promised);
}

EDL_INLINE void decision_loop::run_commands() {
  remember();
  for (bool more = true; more;) {
    auto const commands = coordinator_.take_commands();
    more = !commands.empty();
    for (command const& c : commands) {
      waiting w{.work = [this, c] { execute_(c); },
                .starts = detail::started_by(c),
                .stops = detail::stopped_by(c)};
      if (w.starts && starts(*w.starts)) continue;  // the process is also started for another reason
      if (is_promise(c))
        unkept_.push_back(std::move(w));
      else
        perform(w.work);
    }
    if (more || unkept_.empty() || !keeper_.kept()) continue;
    waiting const next = std::move(unkept_.front());
    unkept_.pop_front();
    perform(next.work);
    more = true;  // the write may have failed
  }
  std::array<std::uint64_t, 5> const now{generation(), coordinator_.generation(),
                                         coordinator_.current_world().number, coordinator_.over(), ended_};
  if (std::exchange(announced_, now) != now) announces_.notify();
  if (kept()) keeps_.notify();
}

EDL_INLINE void decision_loop::when_kept(std::function<void()> work) {
  unkept_.push_back({.work = std::move(work)});
  run_commands();
}

EDL_INLINE bool decision_loop::starts(process_id who) const {
  auto const last = std::find_if(unkept_.rbegin(), unkept_.rend(),
                                 [&](waiting const& w) { return w.starts == who || w.stops == who; });
  return last != unkept_.rend() && last->starts == who;
}

EDL_INLINE void decision_loop::perform(std::function<void()> const& work) try {
  work();
} catch (std::exception const& e) {
  coordinator_.fail(fmt::format("the master cannot carry out a decision: {}", e.what()));
}

EDL_INLINE asio::awaitable<void> decision_loop::announced() {
  remember();
  while (keeper_.generation() < coordinator_.generation()) co_await announces_.wait();
}

EDL_INLINE bool decision_loop::end() {
  invariant(coordinator_.over(), "only a job that is over ends");
  return !std::exchange(ended_, true);
}

EDL_INLINE void decision_loop::fail(std::string const& reason) {
  coordinator_.fail(reason);
  run_commands();
}

EDL_INLINE void decision_loop::carry(std::string what, std::function<asio::awaitable<void>()> work) {
  net::carry(node_, std::move(work), [this, what = std::move(what)](std::string const& why) {
    fail(fmt::format("{}: {}", what, why));
  });
}

}  // namespace edl::master
