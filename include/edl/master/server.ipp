// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <map>
#include <optional>

#include "edl/checkpoint/checkpoint.hpp"
#include "edl/checkpoint/directory.hpp"
#include "edl/checkpoint/layout_digest.hpp"
#include "edl/checkpoint/model_file.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/partition.hpp"
#include "edl/master/server.hpp"
#include "edl/net/event.hpp"
#include "edl/net/status.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/ledger_message.hpp"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::chrono::milliseconds longest_watch{5'000}, longest_entry{1'000}, call_again{200};

inline role role_of(wire::JoinRequest::Role r) {
  return r == wire::JoinRequest::SERVER ? role::server : role::worker;
}

inline wire::Task to_message(task_reply const& r, job_options const& o) {
  wire::Task t;
  static_assert(int(task_kind::finished) == wire::Task::FINISHED);
  t.set_kind(wire::Task::Kind(r.kind));
  t.set_generation(r.generation);
  if (!is_work(r.kind)) return t;
  t.set_lease(r.lease);
  t.mutable_key()->set_epoch(r.key.epoch);
  t.mutable_key()->set_index(r.key.index);
  t.set_shard(r.range.shard);
  t.set_shard_name(o.shards(r.kind)[r.range.shard].name);
  t.set_begin(r.range.begin);
  t.set_end(r.range.end);
  t.set_version(r.version);
  t.set_applied(r.applied);
  t.set_resumed(r.resumed);
  t.set_until(r.until);
  return t;
}

}  // namespace detail

EDL_INLINE server::server(net::node& on, server_options options, callbacks around, logger log)
    : node_(on),
      options_(std::move(options)),
      around_(std::move(around)),
      log_(std::move(log)),
      coordinator_(options_.job, std::chrono::steady_clock::now(), options_.before),
      changed_(on.executor()),
      events_(options_.before ? options_.before->events : 0),
      watchdog_(options_.step_patience) {}

EDL_INLINE void server::listens_at(std::vector<std::string> addresses) {
  addresses_ = std::move(addresses);
  obey();
}

EDL_INLINE asio::awaitable<void> server::handle(net::request& r) {
  auto const now = std::chrono::steady_clock::now();
  std::string reply;
  switch (r.method()) {
    case wire::method::join: {
      auto const m = wire::unpack<wire::JoinRequest>(r.message(), r.peer());
      join_request const request{detail::role_of(m.role()),
                                 m.id(),
                                 m.incarnation(),
                                 {m.addresses().begin(), m.addresses().end()},
                                 m.layout(),
                                 m.held(),
                                 {m.ranges().begin(), m.ranges().end()},
                                 m.heard()};
      auto const where = net::parse_addresses(request.addresses);
      join_reply const answer = coordinator_.join(request, now);
      bool const keeps = request.of == role::server || options_.job.replicas;
      if (answer.accepted && keeps && servers_[m.id()].incarnation != m.incarnation())
        servers_[m.id()] = {
            m.incarnation(),
            std::make_shared<net::channel>(
                node_, where, fmt::format("{}-{}", request.of == role::server ? "ps" : "worker", m.id()))};
      wire::JoinReply out;
      out.set_accepted(answer.accepted);
      out.set_reason(answer.reason);
      out.set_over(answer.over);
      reply = wire::pack(out);
      break;
    }
    case wire::method::cluster: {
      auto const m = wire::unpack<wire::ClusterRequest>(r.message(), r.peer());
      wire::Cluster out;
      out.set_generation(coordinator_.generation());
      // What a worker knows of when it joins, it has not heard here.
      out.set_ready(coordinator_.ready() && coordinator_.workers().known(m.id(), m.incarnation()));
      for (range_place const& place : coordinator_.places()) {
        auto* range = out.add_ranges();
        range->set_server(place.primary);
        if (member const* const one = coordinator_.servers().find(place.primary))
          for (std::string const& a : one->addresses) range->add_addresses(a);
      }
      reply = wire::pack(out);
      break;
    }
    case wire::method::heartbeat: {
      auto const m = wire::unpack<wire::Heartbeat>(r.message(), r.peer());
      heartbeat_reply const answer =
          coordinator_.heartbeat(detail::role_of(m.role()), m.id(), m.incarnation(),
                                 {.version = m.version(),
                                  .records = m.records(),
                                  .loss = m.loss(),
                                  .resident_bytes = m.resident_bytes(),
                                  .position = m.position()},
                                 now);
      wire::HeartbeatReply out;
      out.set_known(answer.known);
      out.set_stranger(answer.stranger);
      out.set_finished(answer.finished && ended_);  // not before the model has been taken from the servers
      reply = wire::pack(out);
      break;
    }
    case wire::method::leave: {
      auto const m = wire::unpack<wire::LeaveRequest>(r.message(), r.peer());
      coordinator_.left(detail::role_of(m.role()), m.id(), m.incarnation(), now);
      reply = wire::pack(wire::Empty{});
      break;
    }
    case wire::method::scale: {
      auto const m = wire::unpack<wire::ScaleRequest>(r.message(), r.peer());
      scale_request wanted;
      if (m.has_workers()) wanted.workers = m.workers();
      if (m.has_servers()) wanted.servers = m.servers();
      wire::ScaleReply out;
      out.set_refused(coordinator_.scale(wanted, now));
      reply = wire::pack(out);
      break;
    }
    case wire::method::cut_off: {
      auto const m = wire::unpack<wire::CutOffRequest>(r.message(), r.peer());
      coordinator_.backup_cut_off(m.server(), m.generation(), m.range(), now);
      reply = wire::pack(wire::Empty{});
      break;
    }
    case wire::method::watch:
      reply = co_await watch(r);
      break;
    case wire::method::enter:
      reply = co_await enter(r);
      break;
    case wire::method::task: {
      auto const m = wire::unpack<wire::TaskRequest>(r.message(), r.peer());
      task_reply work = coordinator_.request_task(m.worker(), m.incarnation(), now, m.lane());
      // The model is still to be taken from the workers that keep it.
      if (work.kind == task_kind::finished && options_.job.replicas && !ended_) work.kind = task_kind::wait;
      reply = wire::pack(detail::to_message(work, options_.job));
      break;
    }
    case wire::method::report: {
      auto const m = wire::unpack<wire::TaskReport>(r.message(), r.peer());
      wire::TaskReportReply out;
      out.set_accepted(coordinator_.report_task({.worker = m.worker(),
                                                 .incarnation = m.incarnation(),
                                                 .lease = m.lease(),
                                                 .error = m.error(),
                                                 .metrics = {m.metrics().begin(), m.metrics().end()},
                                                 .returned = m.returned(),
                                                 .applied = m.applied(),
                                                 .skipped = m.skipped()},
                                                now));
      reply = wire::pack(out);
      break;
    }
    case wire::method::version: {
      auto const m = wire::unpack<wire::VersionReport>(r.message(), r.peer());
      version_report const report{m.generation(), m.version(), m.evaluate(), m.checkpoint()};
      if (report.evaluate)
        carry("a version cannot be evaluated", [this, report] { return claim(report); });
      else
        coordinator_.version_reached(report, now);
      reply = wire::pack(wire::Empty{});
      break;
    }
    default:
      throw net::call_error(net::status::unknown_method,
                            fmt::format("the master knows no method {}", r.method()));
  }
  obey();
  co_await r.reply(reply);
}

EDL_INLINE bool server::stranger(role of, std::uint32_t id, std::uint64_t incarnation) const {
  membership const& all = of == role::worker ? coordinator_.workers() : coordinator_.servers();
  return all.check(id, incarnation) == membership::verdict::fresh && !coordinator_.over();
}

EDL_INLINE asio::awaitable<std::string> server::watch(net::request& r) {
  auto const m = wire::unpack<wire::WatchRequest>(r.message(), r.peer());
  role const of = detail::role_of(m.role());
  ++calls_[{of, m.id()}];
  auto const until = std::chrono::steady_clock::now() + std::min(r.time_left(), detail::longest_watch);
  try {
    while (coordinator_.generation() == m.generation() && !stranger(of, m.id(), m.incarnation()) && !ended_) {
      bool const in_time = co_await changed_.wait_until(until);
      if (!in_time) break;
    }
  } catch (asio::system_error const&) {
    hung_up(of, m.id(), m.incarnation());
    throw;
  }
  wire::WatchReply out;
  out.set_stranger(stranger(of, m.id(), m.incarnation()));
  out.set_generation(coordinator_.generation());
  out.set_finished(ended_ && coordinator_.over());
  co_return wire::pack(out);
}

// Its connection ended while it waited. Another process' reset may have caused that, so it has a moment to
// call again.
EDL_INLINE void server::hung_up(role of, std::uint32_t id, std::uint64_t incarnation) {
  std::uint64_t const calls = calls_[{of, id}];
  node_.spawn([this, of, id, incarnation, calls]() -> asio::awaitable<void> {
    asio::steady_timer timer(node_.executor(), detail::call_again);
    co_await timer.async_wait(asio::use_awaitable);
    if (calls_[{of, id}] != calls) co_return;
    coordinator_.hung_up(of, id, incarnation, std::chrono::steady_clock::now());
    obey();
  });
}

EDL_INLINE asio::awaitable<std::string> server::enter(net::request& r) {
  auto const m = wire::unpack<wire::EnterRequest>(r.message(), r.peer());
  entry e{.incarnation = m.incarnation(), .last = m.last(), .copy = {}, .suspect = {}};
  if (m.copy()) e.copy = copy_position{m.version(), wire::from_message(m.ledger()), m.of()};
  if (m.suspect_size() > 0) e.suspect = m.suspect(0);
  coordinator_.enter(m.worker(), std::move(e), std::chrono::steady_clock::now());
  obey();
  // Known to the master before this one, it may ask to enter before it has joined here.
  bool const came_early = stranger(role::worker, m.worker(), m.incarnation());
  auto const until = std::chrono::steady_clock::now() + std::min(r.time_left(), detail::longest_entry);
  wire::World out;
  for (;;) {
    bool const known = coordinator_.workers().known(m.worker(), m.incarnation());
    out.set_known(known || stranger(role::worker, m.worker(), m.incarnation()));
    out.set_over(coordinator_.over() && ended_);
    if (!out.known() || out.over() || (known && came_early)) break;
    if (world const* const w =
            coordinator_.over() ? nullptr : coordinator_.world_of(m.worker(), m.incarnation())) {
      out.set_number(w->number);
      out.set_version(w->version);
      out.set_restore(w->restore);
      for (world::member const& one : w->members) {
        auto* const member = out.add_members();
        member->set_id(one.id);
        member->set_incarnation(one.incarnation);
        member->set_current(one.current);
        for (std::string const& a : one.addresses) member->add_addresses(a);
      }
      break;
    }
    if (!co_await changed_.wait_until(until)) break;
  }
  co_return wire::pack(out);
}

EDL_INLINE asio::awaitable<void> server::tick() {
  asio::steady_timer timer(node_.executor());
  while (!coordinator_.over()) {
    auto const now = std::chrono::steady_clock::now();
    coordinator_.tick(now);
    obey();
    forget_gone();
    watch_steps(now);
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
  // What is trained has to be fetched yet, and a server may not answer.
  while (!ended_) {
    watch_steps(std::chrono::steady_clock::now());
    timer.expires_after(std::chrono::milliseconds(250));
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (shown_.value_or("") != "" && around_.waits) around_.waits("");
}

// Whoever waits for a word of one that is gone is told so.
EDL_INLINE void server::forget_gone() {
  std::erase_if(servers_, [&](auto const& one) {
    keeper const k{.to = nullptr, .range = 0, .id = one.first, .incarnation = one.second.incarnation};
    if (takes_part(k)) return false;
    one.second.to->close();
    return true;
  });
}

EDL_INLINE void server::exited(role of, std::uint32_t id, exit_kind kind, std::string const& why,
                               std::uint64_t number) {
  events_ = number;
  coordinator_.exited(of, id, kind, why, std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE void server::leaving(std::uint32_t worker, std::string const& why) {
  coordinator_.leaving(worker, why);
  obey();
}

EDL_INLINE std::string server::scale(scale_request const& r) {
  std::string refused = coordinator_.scale(r, std::chrono::steady_clock::now());
  obey();
  return refused;
}

EDL_INLINE void server::adopt(found_processes const& those) {
  coordinator_.adopt(those, std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE void server::suspend() {
  coordinator_.suspend(std::chrono::steady_clock::now());
  obey();
}

EDL_INLINE void server::obey() {
  // Before anybody hears of it.
  auto const time = std::chrono::steady_clock::now();
  bool const tries = !unkept_ || time - *unkept_ >= options_.storage_pause;
  if (std::pair const known(coordinator_.remembers(), events_);
      tries && (kept_ != known || addresses_.empty())) {
    memory now = coordinator_.remembered();
    now.events = events_;
    now.addresses = addresses_;
    try {
      options_.journal.write(now);
      if (!addresses_.empty()) kept_ = known;
      unkept_.reset();
    } catch (error const& e) {
      if (!std::exchange(unkept_, time))
        log_.error(fmt::format(
            "{}; it is tried again; as long as that is so, a successor of this master knows less", e.what()));
    }
  }
  for (auto commands = coordinator_.take_commands(); !commands.empty();
       commands = coordinator_.take_commands())
    for (command const& c : commands) try {
        std::visit([this](auto const& one) { execute(one); }, c);
      } catch (std::exception const& e) {
        coordinator_.fail(fmt::format("the master cannot do what it has decided: {}", e.what()));
      }
  changed_.notify();
}

EDL_INLINE void server::execute(ask_version const& c) {
  carry("the servers' last version cannot be asked for", [this, g = c.generation] { return settle(g); });
}

EDL_INLINE void server::execute(write_checkpoint const& c) {
  carry("a checkpoint cannot be written", [this, c] { return checkpoint(c); });
}

EDL_INLINE void server::execute(release_frozen const& c) {
  carry("a version cannot be released", [this, c] { return release(c); });
}

EDL_INLINE void server::execute(replace_process const& c) { around_.replace(c.of, c.id, c.with); }

EDL_INLINE void server::execute(evaluation_done const& c) { around_.evaluated(c.result); }

EDL_INLINE void server::execute(finish_job const&) {
  carry("the job cannot be finished", [this] { return finish(); });
}

EDL_INLINE void server::execute(suspend_job const&) {
  if (!std::exchange(ended_, true)) around_.ended({});
}

EDL_INLINE void server::execute(fail_job const& c) {
  if (!std::exchange(ended_, true)) around_.ended(c.reason);
}

EDL_INLINE void server::execute(log_line const& c) { log_.log(c.level, c.text); }

}  // namespace edl::master
