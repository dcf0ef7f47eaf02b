// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/process_message.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/worker/remote.hpp"

namespace edl::worker {
namespace detail {

inline constexpr std::chrono::minutes transfer_timeout{10};  // a stalled connection is dropped much earlier
inline constexpr std::chrono::milliseconds retry_pause{20};

// The limit for returning leases before this process exits, if the master responds.
inline constexpr std::chrono::seconds last_words{5};

template <class Reply, class Request>
Reply ask(net::channel& to, std::uint16_t method, Request const& request,
          std::function<bool()> const& stopping) {
  net::outgoing const what{
      .method = method, .message = wire::pack(request), .timeout = master_call_timeout, .idempotent = true};
  return wire::unpack<Reply>(ask_master(to, what, stopping).message, to.name());
}

/// What the failure of a call to a server requires.
enum class remedy { none, another_try, another_generation };

// `generation_is_over` causes `cancelled`. If the node is stopping, `refresh` throws.
inline remedy remedy_of(net::call_error const& e) {
  using enum net::status;
  if (e.code() == stale_generation) return remedy::another_generation;
  return is_away(e) || e.code() == cancelled || e.code() == not_ready ? remedy::another_try : remedy::none;
}

template <class Message>
void write_minibatch(contribution const& c, Message& into) {
  into.mutable_task()->set_epoch(c.key.task.epoch);
  into.mutable_task()->set_index(c.key.task.index);
  into.set_minibatch(c.key.index);
  into.set_minibatches(c.key.count);
  into.set_records(c.records);
  into.set_skipped(c.skipped);
}

}  // namespace detail

EDL_INLINE bool is_away(net::call_error const& e) {
  return e.code() == net::status::unavailable || e.code() == net::status::deadline_exceeded;
}

EDL_INLINE net::reply ask_master(net::channel& master, net::outgoing const& what,
                                 std::function<bool()> const& stopping) {
  if (!stopping) return net::wait(master, what);
  std::optional<time_point> stopping_since;
  for (;;) {
    net::started_call call = net::start(master, what);
    while (!call.wait_for(std::chrono::milliseconds(50))) {
      if (!stopping_since && stopping()) stopping_since = clock::now();
      if (stopping_since && clock::now() - *stopping_since > detail::last_words)
        throw interrupted("shutting down: the master could not be reached");
    }
    try {
      return call.get();
    } catch (net::call_error const& e) {
      if (!is_away(e)) throw;
    }
    std::this_thread::sleep_for(detail::retry_pause);
  }
}

EDL_INLINE bool remote_parameters::refresh() {
  wire::ClusterRequest request;
  request.set_id(self_.id);
  request.set_incarnation(self_.incarnation);
  wire::Cluster now;
  for (;;) {
    now = detail::ask<wire::Cluster>(master_, wire::method::cluster, request, stopping_);
    if (now.ready()) break;
    if (stopping_ && stopping_()) throw interrupted("shutting down: the servers were not ready");
    std::this_thread::sleep_for(detail::retry_pause);
  }
  if (now.generation() == generation_) return false;
  invariant(!under_way_, "no call is under way through a channel that is replaced");
  servers_.clear();
  auto const count = std::uint32_t(now.ranges_size());
  for (std::uint32_t range = 0; range < count; ++range) {
    auto const& s = now.ranges(int(range));
    servers_.push_back({std::make_unique<net::channel>(node_, net::parse_addresses(s.addresses()),
                                                       fmt::format("ps-{}", s.server())),
                        range, partition(elements_, count, range, borders_)});
  }
  rows_.emplace(tables_, count);
  {
    std::lock_guard const guard(lock_);
    generation_ = now.generation();
  }
  invariant(servers_.size() == count, "each range has its server");
  invariant(
      servers_.empty() || (servers_.front().range.first == 0 && servers_.back().range.last == elements_),
      "the ranges are all of the model");
  return true;
}

EDL_INLINE void remote_parameters::generation_is_over(std::uint64_t next) {
  std::lock_guard const guard(lock_);
  over_ = next;
  if (under_way_ && over_ > generation_)
    for (net::started_call& c : *under_way_) c.cancel();
}

EDL_INLINE void remote_parameters::set_under_way(std::vector<net::started_call>* calls) {
  std::lock_guard const guard(lock_);
  under_way_ = calls;
  if (calls && over_ > generation_)
    for (net::started_call& c : *calls) c.cancel();
}

// Calls every server, and repeats the calls while a server cannot be reached: every call is idempotent. If a
// server is lost, a new generation follows, and this throws `rolled_back`. `with`: pulls these divided rows
// in the same round; each server gets the call for rows after the other one.
template <class Make, class Take>
void remote_parameters::ask_all(Make make, Take take, sparse::minibatch_rows* with) {
  if (generation_ == 0) refresh();
  for (;;) {
    struct shown_calls {
      remote_parameters& to;
      std::vector<net::started_call> all;
      ~shown_calls() { to.set_under_way(nullptr); }
    } calls{*this, {}};
    for (server const& s : servers_) calls.all.push_back(net::start(*s.to, make(s)));
    if (with)
      for (server const& s : servers_) calls.all.push_back(net::start(*s.to, rows_call(s, *with)));
    invariant(calls.all.size() == servers_.size() * (with ? 2 : 1), "each server is asked");
    set_under_way(&calls.all);
    std::optional<net::call_error> failed;
    std::vector<std::string> replies;
    for (net::started_call& c : calls.all) try {
        replies.push_back(c.get().message);
      } catch (net::call_error const& e) {
        // One server's error may be a consequence of another's. Take the strongest remedy: it helps both.
        if (!failed || detail::remedy_of(e) > detail::remedy_of(*failed)) failed = e;
      }
    set_under_way(nullptr);  // `refresh` replaces the channels by which calls are cancelled
    if (!failed) {
      invariant(replies.size() == calls.all.size(), "each call that did not fail has its reply");
      for (std::size_t i = 0; i < servers_.size(); ++i) take(servers_[i], replies[i]);
      return;
    }
    if (detail::remedy_of(*failed) == detail::remedy::none) throw *failed;
    if (refresh()) throw rolled_back(failed->what());
    std::this_thread::sleep_for(detail::retry_pause);
  }
}

EDL_INLINE std::uint64_t remote_parameters::pull_from(std::span<float> variables,
                                                      std::optional<std::uint64_t> frozen,
                                                      sparse::minibatch_rows* with) {
  // The variables as a whole are at least at the servers' oldest version. After a loss the versions may
  // differ for long, because each server has other minibatches of an incomplete step.
  std::uint64_t oldest = ~std::uint64_t{0};
  std::vector<std::uint64_t> versions;
  ask_all(
      [&](server const& s) {
        wire::PullRequest request;
        request.set_generation(generation_);
        request.set_range(s.id);
        request.set_frozen(frozen.has_value());
        request.set_version(frozen.value_or(0));
        request.set_check_memory(doubted_ && !frozen);
        net::outgoing what{.method = wire::method::pull,
                           .message = wire::pack(request),
                           .timeout = detail::transfer_timeout};
        what.into.push_back(std::as_writable_bytes(variables.subspan(s.range.first, s.range.size())));
        return what;
      },
      [&](server const& s, std::string const& reply) {
        versions.push_back(wire::unpack<wire::PullReply>(reply, s.to->name()).version());
        oldest = std::min(oldest, versions.back());
      },
      with);
  invariant(versions.size() == servers_.size(), "each server has reported its version");
  if (frozen) return oldest;
  doubted_ = false;
  for (std::size_t i = 0; i < servers_.size(); ++i) servers_[i].ahead = versions[i] - oldest;
  return oldest;
}

EDL_INLINE void remote_parameters::divide(sparse::minibatch_rows& rows) {
  if (generation_ == 0) refresh();
  for (std::size_t t = 0; t < rows.tables() && servers_.size() > 1; ++t) rows_->divide(t, rows.ids(t));
}

EDL_INLINE void remote_parameters::gather(sparse::minibatch_rows& rows) {
  for (std::size_t t = 0; t < rows.tables() && servers_.size() > 1; ++t) rows_->gather(t, rows.rows(t));
}

EDL_INLINE net::outgoing remote_parameters::rows_call(server const& s, sparse::minibatch_rows& rows) {
  bool const one = servers_.size() == 1;  // that server has all variables
  wire::PullRowsRequest request;
  request.set_generation(generation_);
  request.set_range(s.id);
  net::outgoing what{.method = wire::method::pull_rows, .timeout = detail::transfer_timeout};
  for (std::size_t t = 0; t < rows.tables(); ++t) {
    auto const ids = one ? rows.ids(t) : rows_->ids(s.id, t);
    request.add_rows(std::uint32_t(ids.size()));
    what.payload.push_back(std::as_bytes(ids));
    what.into.push_back(std::as_writable_bytes(one ? rows.rows(t) : rows_->values(s.id, t)));
  }
  what.message = wire::pack(request);
  return what;
}

EDL_INLINE void remote_parameters::pull_rows(sparse::minibatch_rows& rows) {
  divide(rows);
  ask_all([&](server const& s) { return rows_call(s, rows); }, [](server const&, std::string const&) {});
  gather(rows);
}

EDL_INLINE std::uint64_t remote_parameters::pull_with_rows(std::span<float> variables,
                                                           sparse::minibatch_rows& rows) {
  divide(rows);
  std::uint64_t const version = pull_from(variables, std::nullopt, &rows);
  gather(rows);
  return version;
}

EDL_INLINE std::uint64_t remote_parameters::pull(std::span<float> variables) {
  return pull_from(variables, std::nullopt);
}

EDL_INLINE void remote_parameters::pull_frozen(std::uint64_t version, std::span<float> variables) {
  pull_from(variables, version);
}

EDL_INLINE pushed remote_parameters::push(std::span<contribution const> minibatches, std::uint64_t version,
                                          view<float> gradients, view<float> state_change,
                                          std::span<sparse::row_gradients const> rows) {
  invariant(!minibatches.empty(), "a push has a minibatch");
  pushed result;
  bool const bfloat16 = !rounded_.empty();
  invariant(!bfloat16 || rounded_.size() == gradients.size(), "each gradient has room to be rounded");
  if (bfloat16) std::ranges::transform(gradients, rounded_.begin(), to_bfloat16);
  if (generation_ == 0) refresh();
  bool const one = servers_.size() == 1;  // that server has all rows
  for (std::size_t t = 0; t < rows.size() && !one; ++t) {
    rows_->divide(t, rows[t].ids);
    rows_->scatter(t, rows[t].gradients);
  }
  auto const part = [&](std::size_t first, std::size_t last) {
    return bfloat16 ? std::as_bytes(std::span(rounded_).subspan(first, last - first))
                    : std::as_bytes(gradients.subspan(first, last - first));
  };
  ask_all(
      [&](server const& s) {
        wire::PushRequest request;
        request.set_bfloat16(bfloat16);
        request.set_range(s.id);
        request.set_generation(generation_);
        request.set_version(version + s.ahead);
        detail::write_minibatch(minibatches.front(), request);
        for (contribution const& c : minibatches.subspan(1)) detail::write_minibatch(c, *request.add_more());
        if (float const rate = minibatches.front().rate; rate != 1) request.set_rate(rate);
        for (std::size_t t = 0; t < rows.size(); ++t)
          request.add_rows(std::uint32_t((one ? rows[t].ids : rows_->ids(s.id, t)).size()));
        net::outgoing what{.method = wire::method::push,
                           .message = wire::pack(request),
                           .timeout = detail::transfer_timeout};
        std::size_t const middle = std::clamp(parameters_, s.range.first, s.range.last);
        if (middle > s.range.first) what.payload.push_back(part(s.range.first, middle));
        if (s.range.last > middle)
          what.payload.push_back(
              std::as_bytes(state_change.subspan(middle - parameters_, s.range.last - middle)));
        for (std::size_t t = 0; t < rows.size(); ++t) {
          what.payload.push_back(std::as_bytes(one ? rows[t].ids : rows_->ids(s.id, t)));
          what.payload.push_back(
              std::as_bytes(one ? rows[t].gradients : view<float>(rows_->values(s.id, t))));
        }
        return what;
      },
      [&](server const& s, std::string const& reply) {
        auto const r = wire::unpack<wire::PushReply>(reply, s.to->name());
        result.stale |= r.verdict() == wire::PushReply::STALE;
        result.version = std::max(result.version, r.version());
      });
  return result;
}

EDL_INLINE std::uint32_t remote_parameters::position(task_key const& task, std::uint32_t minibatches) {
  std::uint32_t least = minibatches;
  ask_all(
      [&](server const& s) {
        wire::PositionRequest request;
        request.set_range(s.id);
        request.set_generation(generation_);
        request.mutable_task()->set_epoch(task.epoch);
        request.mutable_task()->set_index(task.index);
        return net::outgoing{.method = wire::method::position, .message = wire::pack(request)};
      },
      [&](server const& s, std::string const& reply) {
        auto const r = wire::unpack<wire::PositionReply>(reply, s.to->name());
        least = std::min(least, r.closed() ? minibatches : r.applied());
      });
  return least;
}

EDL_INLINE assignment remote_master::next(std::uint32_t lane) {
  if (held_) {
    assignment const a = *held_;
    held_.reset();
    if (!parameters_.rests_at()) return a;  // it belongs to the generation that was announced with it
    report({.lease = a.lease, .returned = true, .applied = a.applied});  // too early: evaluate first
  }
  wire::TaskRequest request;
  request.set_worker(self_.id);
  request.set_incarnation(self_.incarnation);
  request.set_lane(lane);
  request.set_rests_at(parameters_.rests_at().value_or(0));
  request.set_number(++requests_);
  auto const t = detail::ask<wire::Task>(master_, wire::method::task, request, stopping_);
  assignment a;
  if (!wire::Task::Kind_IsValid(t.kind()))
    throw error("the master leased a task of a kind that this worker does not know");
  a.kind = task_kind(t.kind());
  a.rests = t.rests();
  if (!is_work(a.kind)) {
    // There may be no work in this generation, but some in the next.
    std::uint64_t const known = parameters_.generation();
    if (a.kind == task_kind::wait && known != 0 && t.generation() != known && parameters_.refresh())
      throw rolled_back(fmt::format("the job is at generation {}", count_of(parameters_.generation())));
    return a;
  }
  a.lease = t.lease();
  a.task = {t.key().epoch(), t.key().index()};
  a.shard = t.shard();
  a.shard_name = t.shard_name();
  a.begin = t.begin();
  a.end = t.end();
  a.version = t.version();
  a.applied = t.applied();
  a.resumed = t.resumed();
  a.until = t.until();
  if (t.has_rate()) a.rate = t.rate();
  a.of = t.of();
  a.addresses = {t.addresses().begin(), t.addresses().end()};
  if (t.generation() != parameters_.generation()) {
    bool const first = parameters_.generation() == 0;
    parameters_.refresh();
    // The reply may be a repeated one, or from a master that has ended meanwhile. Then its lease is void
    // together with its generation.
    bool const holds = t.generation() == parameters_.generation();
    if (!first || !holds) {
      if (holds) held_ = a;
      throw rolled_back(fmt::format("the servers are at generation {}", count_of(parameters_.generation())));
    }
  }
  return a;
}

EDL_INLINE bool remote_master::report(outcome const& o) {
  wire::TaskReport report;
  report.set_worker(self_.id);
  report.set_incarnation(self_.incarnation);
  report.set_lease(o.lease);
  report.set_error(o.error);
  report.set_skipped(o.skipped);
  report.set_returned(o.returned);
  report.set_applied(o.applied);
  report.set_number(++requests_);
  for (double m : o.metrics) report.add_metrics(m);
  wire::to_message(o.trained, *report.mutable_trained());
  report.set_task(o.task);
  report.set_worst(o.worst);
  report.set_wrong(o.wrong);
  report.set_refused(o.refused);
  for (checked_minibatch const& c : o.checked) {
    auto& out = *report.add_checked();
    out.set_index(c.index);
    out.set_version(c.version);
    out.set_weights(c.weights);
    out.set_gradient(c.gradient);
  }
  return detail::ask<wire::TaskReportReply>(master_, wire::method::report, report, stopping_).accepted();
}

}  // namespace edl::worker
