// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cmath>
#include <memory>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/process_message.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/master/server/handlers.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::chrono::milliseconds longest_watch{5'000}, longest_entry{1'000}, call_again{200},
    longest_turn{3'000};

inline wire::Task to_message(task_reply const& r, job_options const& o) {
  wire::Task t;
  static_assert(int(task_kind::finished) == wire::Task::FINISHED);
  t.set_kind(wire::Task::Kind(r.kind));
  t.set_generation(r.generation);
  t.set_rests(r.rests);
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
  if (r.rate != 1) t.set_rate(r.rate);
  t.set_of(r.of);
  return t;
}

inline wire::World to_message(world const& w) {
  wire::World out;
  out.set_known(true);
  out.set_number(w.number);
  out.set_version(w.version);
  out.set_restore(w.restore);
  out.set_of(w.copied_from);
  out.set_wanted(w.wanted);
  for (world::member const& one : w.members) {
    auto* const member = out.add_members();
    member->set_id(one.id);
    member->set_incarnation(one.incarnation);
    member->set_current(one.current);
    for (std::string const& a : one.addresses) member->add_addresses(a);
  }
  return out;
}

}  // namespace detail

template <class Request, class Reply>
std::string handlers::answer(net::request& r, Reply (handlers::*how)(Request const&)) {
  return wire::pack((this->*how)(wire::unpack<Request>(r.message(), r.peer())));
}

template <class Request, class Reply>
std::string handlers::answer_once(net::request& r, Reply (handlers::*how)(Request const&)) {
  auto const m = wire::unpack<Request>(r.message(), r.peer());
  auto const last = answers_.find(m.worker());
  if (m.number() != 0 && last != answers_.end() && last->second.incarnation == m.incarnation()) {
    if (last->second.number == m.number()) return last->second.text;
    if (last->second.number > m.number())
      throw net::call_error(net::status::cancelled,
                            fmt::format("{} has sent a newer request since", r.peer()));
  }
  std::string text = wire::pack((this->*how)(m));
  if (m.number() != 0 && coordinator_.workers().known(m.worker(), m.incarnation()))
    answers_[m.worker()] = {m.incarnation(), m.number(), text};
  return text;
}

EDL_INLINE asio::awaitable<void> handlers::handle(net::request& r) {
  if (processes_.adopting())
    throw net::call_error(net::status::unavailable, "this master does not know yet which processes run");
  std::string reply;
  switch (r.method()) {
    case wire::method::join:
      reply = answer(r, &handlers::join);
      break;
    case wire::method::cluster:
      co_await loop_.announced();
      reply = answer(r, &handlers::cluster);
      break;
    case wire::method::heartbeat:
      reply = answer(r, &handlers::heartbeat);
      break;
    case wire::method::leave:
      reply = answer(r, &handlers::leave);
      break;
    case wire::method::scale:
      reply = answer(r, &handlers::change_size);
      break;
    case wire::method::cut_off:
      reply = answer(r, &handlers::cut_off);
      break;
    case wire::method::watch:
      reply = co_await watch(r);
      break;
    case wire::method::enter:
      reply = co_await enter(r);
      break;
    case wire::method::task:
      co_await loop_.announced();
      reply = answer_once(r, &handlers::task);
      break;
    case wire::method::report:
      reply = answer_once(r, &handlers::report);
      break;
    case wire::method::probe:
      co_await take_probe(r);
      break;
    case wire::method::version:
      reply = answer(r, &handlers::version);
      break;
    default:
      throw net::call_error(net::status::unknown_method,
                            fmt::format("the master knows no method {}", r.method()));
  }
  loop_.run_commands();
  // The client that requested another size may disconnect.
  if (r.method() == wire::method::scale)
    while (!loop_.kept()) co_await loop_.keeps().wait();
  co_await r.reply(reply);
}

// The caller measures how fast this arrives. A request without bytes asks for a turn: two concurrent
// measurements would disturb each other.
EDL_INLINE asio::awaitable<void> handlers::take_probe(net::request& r) {
  if (r.payload_size() == 0) {
    auto const until = now() + r.time_left();
    while (now() < probed_until_)
      if (!co_await turns_.wait_until(std::min(until, probed_until_)) && now() >= until)
        throw net::call_error(net::status::not_ready, "other members are measuring their machines");
    probed_until_ = now() + detail::longest_turn;
    co_return;
  }
  probed_until_ = {};
  if (r.payload_size() > wire::most_probe_bytes)
    throw net::call_error(net::status::invalid,
                          fmt::format("{} probes with {} bytes", r.peer(), r.payload_size()));
  std::vector<std::byte> taken(r.payload_size());
  co_await r.read(taken);
  turns_.notify_here();
}

EDL_INLINE void handlers::forget_gone() {
  std::erase_if(answers_, [&](auto const& one) {
    return !coordinator_.workers().known(one.first, one.second.incarnation);
  });
}

EDL_INLINE wire::JoinReply handlers::join(wire::JoinRequest const& m) {
  join_request const request{wire::from_message(m.role()),
                             m.id(),
                             m.incarnation(),
                             {m.addresses().begin(), m.addresses().end()},
                             m.layout(),
                             m.held(),
                             {m.ranges().begin(), m.ranges().end()},
                             m.heard(),
                             {m.flags().begin(), m.flags().end()},
                             m.kind().substr(0, 256),
                             m.follows(),
                             {m.disk(), m.network()},
                             m.version(),
                             m.may_follow()};
  auto const where = net::parse_addresses(request.addresses);
  join_reply const answer = coordinator_.join(request, now());
  if (answer.accepted && keepers_.is_keeper(request.role))
    keepers_.joined(m.id(), m.incarnation(), [&] {
      return std::make_shared<net::channel>(node_, where, to_string(process_id{request.role, request.id}));
    });
  if (coordinator_.over()) processes_.comes_late({request.role, request.id});
  if (auto const early = early_.find(m.id()); early != early_.end() && request.role == role::worker)
    early->second->notify();
  wire::JoinReply out;
  out.set_accepted(answer.accepted);
  out.set_reason(answer.reason);
  out.set_over(answer.over);
  out.set_given_up(answer.given_up);
  out.set_spare(answer.spare);
  return out;
}

EDL_INLINE wire::Cluster handlers::cluster(wire::ClusterRequest const& m) {
  wire::Cluster out;
  out.set_generation(coordinator_.generation());
  // A generation that a worker knew before it joined was not reported to it by this master.
  out.set_ready(coordinator_.ready() && coordinator_.workers().known(m.id(), m.incarnation()));
  for (range_place const& place : coordinator_.generations().places()) {
    auto* range = out.add_ranges();
    range->set_server(place.primary);
    if (member const* const one = coordinator_.servers().find(place.primary))
      for (std::string const& a : one->addresses) range->add_addresses(a);
    else
      out.set_ready(false);  // it has left a job that is over
  }
  return out;
}

EDL_INLINE wire::HeartbeatReply handlers::heartbeat(wire::Heartbeat const& m) {
  heartbeat_reply const answer = coordinator_.heartbeat(wire::from_message(m.role()), m.id(), m.incarnation(),
                                                        {.version = m.version(),
                                                         .records = m.records(),
                                                         .loss = m.loss(),
                                                         .resident_bytes = m.resident_bytes(),
                                                         .position = m.position(),
                                                         .pass = std::isfinite(m.pass()) ? m.pass() : 0,
                                                         .trained = wire::from_message(m.trained()),
                                                         .notice = printable(m.notice(), 256)},
                                                        now());
  wire::HeartbeatReply out;
  out.set_known(answer.known);
  out.set_stranger(answer.stranger);
  out.set_spare(answer.spare);
  out.set_leave(answer.leave);
  out.set_finished(answer.finished && loop_.ended());  // only after the model has been taken from the servers
  return out;
}

EDL_INLINE wire::Empty handlers::leave(wire::LeaveRequest const& m) {
  coordinator_.left(wire::from_message(m.role()), m.id(), m.incarnation(), now());
  return {};
}

EDL_INLINE wire::ScaleReply handlers::change_size(wire::ScaleRequest const& m) {
  platform::size_request wanted;
  if (m.has_workers()) wanted.workers = m.workers();
  if (m.has_servers()) wanted.servers = m.servers();
  wire::ScaleReply out;
  out.set_refused(coordinator_.scale(wanted, now()));
  return out;
}

EDL_INLINE wire::Empty handlers::cut_off(wire::CutOffRequest const& m) {
  coordinator_.backup_cut_off(m.server(), m.generation(), m.range(), now());
  return {};
}

EDL_INLINE wire::Task handlers::task(wire::TaskRequest const& m) {
  task_reply work = coordinator_.request_task(m.worker(), m.incarnation(), now(), m.lane(), m.rests_at());
  // The member that should have reported that version, or its report, may have been lost.
  if (work.rests && coordinator_.versions().unannounced(m.rests_at()) && !keeper_calls_.claiming())
    loop_.carry("a version cannot be evaluated",
                [this, r = version_report{work.generation, m.rests_at(), true, false}] {
                  return keeper_calls_.claim(r);
                });
  // The model has yet to be taken from the workers that keep it.
  if (work.kind == task_kind::finished && options_.job.replicas && !loop_.ended())
    work.kind = task_kind::wait;
  wire::Task t = detail::to_message(work, options_.job);
  if (member const* const of = coordinator_.workers().find(work.of); of && work.kind == task_kind::check)
    for (std::string const& a : of->addresses) t.add_addresses(a);
  return t;
}

EDL_INLINE wire::TaskReportReply handlers::report(wire::TaskReport const& m) {
  std::vector<checked_minibatch> checked;
  for (auto const& c : m.checked()) checked.push_back({c.index(), c.version(), c.weights(), c.gradient()});
  wire::TaskReportReply out;
  out.set_accepted(coordinator_.report_task({.worker = m.worker(),
                                             .incarnation = m.incarnation(),
                                             .lease = m.lease(),
                                             .error = m.error(),
                                             .metrics = {m.metrics().begin(), m.metrics().end()},
                                             .returned = m.returned(),
                                             .applied = m.applied(),
                                             .skipped = m.skipped(),
                                             .trained = wire::from_message(m.trained()),
                                             .checked = std::move(checked),
                                             .wrong = m.wrong(),
                                             .refused = m.refused()},
                                            now()));
  if (out.accepted() && inspected_ && !m.worst().empty()) inspected_(m.task(), m.worst());
  return out;
}

EDL_INLINE wire::Empty handlers::version(wire::VersionReport const& m) {
  version_report const report{m.generation(), m.version(), m.evaluate(), m.checkpoint()};
  std::erase_if(versions_, [&](auto const& one) { return one[0] < report.generation; });
  if (!versions_.insert({m.generation(), m.version(), 2u * m.evaluate() + m.checkpoint()}).second) return {};
  if (report.evaluate)
    loop_.carry("a version cannot be evaluated", [this, report] { return keeper_calls_.claim(report); });
  else
    coordinator_.version_reached(report, now());
  return {};
}

EDL_INLINE bool handlers::stranger(role of, std::uint32_t id, std::uint64_t incarnation) const {
  membership const& all = of == role::worker ? coordinator_.workers() : coordinator_.servers();
  return all.check(id, incarnation) == membership::standing::fresh && !coordinator_.over();
}

EDL_INLINE asio::awaitable<std::string> handlers::watch(net::request& r) {
  auto const m = wire::unpack<wire::WatchRequest>(r.message(), r.peer());
  role const of = wire::from_message(m.role());
  std::uint64_t const call = ++calls_[{of, m.id()}];
  auto const until = now() + std::min(r.time_left(), detail::longest_watch);
  try {
    while (loop_.generation() <= m.generation() && !stranger(of, m.id(), m.incarnation()) && !loop_.ended()) {
      bool const in_time = co_await loop_.announces().wait_until(until);
      if (!in_time) break;
    }
  } catch (asio::system_error const&) {
    if (!r.goes_elsewhere()) hung_up(of, m.id(), m.incarnation(), call);
    throw;
  }
  wire::WatchReply out;
  out.set_stranger(stranger(of, m.id(), m.incarnation()));
  out.set_generation(loop_.generation());
  out.set_finished(loop_.ended() && coordinator_.over());
  co_return wire::pack(out);
}

// The connection of its `call`th watch has ended. Another process's reset may be the cause, so the process
// gets a moment to call again. It may already have done so, if its side noticed the end first.
EDL_INLINE void handlers::hung_up(role of, std::uint32_t id, std::uint64_t incarnation, std::uint64_t call) {
  if (calls_[{of, id}] != call) return;
  auto const heard = [this, of, id] {
    member const* const m = (of == role::worker ? coordinator_.workers() : coordinator_.servers()).find(id);
    return m ? m->seen : time_point{};
  };
  node_.spawn([this, of, id, incarnation, call, heard, before = heard()]() -> asio::awaitable<void> {
    asio::steady_timer timer(node_.executor(), detail::call_again);
    co_await timer.async_wait(asio::use_awaitable);
    if (calls_[{of, id}] != call || heard() != before) co_return;  // it lives; silence shows the rest
    coordinator_.hung_up(of, id, incarnation, now());
    loop_.run_commands();
  });
}

// Names the event of an early worker's joining for as long as its call waits.
class handlers::early_entry {
 public:
  early_entry(std::map<std::uint32_t, net::event*>& all, std::uint32_t worker, net::event* joins)
      : all_(all), worker_(worker), joins_(joins) {
    if (joins_) all_[worker_] = joins_;
  }
  early_entry(early_entry const&) = delete;
  ~early_entry() {
    if (auto const it = all_.find(worker_); it != all_.end() && it->second == joins_) all_.erase(it);
  }

 private:
  std::map<std::uint32_t, net::event*>& all_;
  std::uint32_t worker_;
  net::event* joins_;
};

EDL_INLINE asio::awaitable<std::string> handlers::enter(net::request& r) {
  auto const m = wire::unpack<wire::EnterRequest>(r.message(), r.peer());
  entry e{.incarnation = m.incarnation(), .last = m.last(), .copy = {}, .suspect = {}};
  if (m.copy()) e.copy = copy_position{m.version(), wire::from_message(m.ledger()), m.of()};
  if (m.suspect_size() > 0) e.suspect = m.suspect(0);
  e.brings.assign(m.brings().begin(), m.brings().end());
  coordinator_.enter(m.worker(), std::move(e), now());
  loop_.run_commands();
  // A worker that the previous master knew may ask to enter before it has joined here.
  bool const came_early = stranger(role::worker, m.worker(), m.incarnation());
  net::event joins(node_.executor());
  early_entry const early(early_, m.worker(), came_early ? &joins : nullptr);
  net::event& awaited = came_early ? joins : loop_.announces();
  auto const until = now() + std::min(r.time_left(), detail::longest_entry);
  wire::World out;
  for (;;) {
    membership::standing const is = coordinator_.workers().check(m.worker(), m.incarnation());
    bool const known = is == membership::standing::repeated;
    out.set_known(is != membership::standing::given_up);  // also while an over job has yet to end
    out.set_over(coordinator_.over() && loop_.ended());
    if (!out.known() || out.over() || (known && came_early)) break;
    if (world const* const w =
            coordinator_.over() ? nullptr : coordinator_.generations().world_of(m.worker(), m.incarnation());
        w && w->number <= loop_.generation()) {
      // Each member gets the same text, which has all of them: it is made once.
      if (formed_.number != w->number) formed_ = {w->number, wire::pack(detail::to_message(*w))};
      co_return formed_.text;
    }
    if (!co_await awaited.wait_until(until)) break;
  }
  co_return wire::pack(out);
}

}  // namespace edl::master
