// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <fstream>

#include "edl/app/environment.hpp"
#include "edl/app/member.hpp"
#include "edl/base/net/blocking.hpp"
#include "edl/base/net/carry.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/process_message.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/worker/remote.hpp"

namespace edl::app {
namespace detail {

inline std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * std::uint64_t(::sysconf(_SC_PAGESIZE));
}

// Longer than it takes to detect a lost reply and to receive another one: a member has 4.5 s.
inline constexpr std::chrono::milliseconds beat_timeout{4'000};

inline constexpr char const* not_needed = "this server is not needed any more";

}  // namespace detail

EDL_INLINE member::member(net::node& on, net::channel& master, role what, std::uint32_t id,
                          std::chrono::seconds timeout)
    : node_(on),
      master_(master),
      role_(what),
      id_(id),
      incarnation_(on.options().self.incarnation ? on.options().self.incarnation : draw_incarnation()),
      absence_(timeout) {}

EDL_INLINE net::outgoing member::join_call(std::chrono::milliseconds timeout) const {
  wire::JoinRequest request;
  request.set_role(wire::to_message(role_));
  request.set_id(id_);
  request.set_incarnation(incarnation_);
  request.set_layout(layout_);
  std::uint64_t heard = announced_;
  if (known_) {
    request.set_held(known_());
    heard = std::max(heard, known_());
  }
  if (heard_) heard = std::max(heard, heard_());
  request.set_heard(heard);
  for (std::string const& flag : flags_) request.add_flags(flag);
  request.set_kind(kind_);
  request.set_disk(disk_);
  request.set_network(network_);
  request.set_follows(follows_ && known_() == 0);
  request.set_may_follow(follows_);
  if (version_) request.set_version(version_());
  if (held_)
    for (std::uint32_t const range : held_()) request.add_ranges(range);
  for (net::address const& a : listening_) request.add_addresses(net::to_string(a));
  return {
      .method = wire::method::join, .message = wire::pack(request), .timeout = timeout, .idempotent = true};
}

EDL_INLINE void member::missed(net::call_error const& why, time_point began) {
  auto const now = clock::now();
  if (std::string const line = absence_.missed(why.what(), began, now); !line.empty())
    node_.options().log.warning(line);
  if (!absence_.over(now)) return;
  {
    std::lock_guard const guard(lock_);
    away_ = absence_.reason();
  }
  lost_ = true;
}

EDL_INLINE void member::explain_loss(std::string const& who) const {
  std::lock_guard const guard(lock_);
  if (!away_.empty()) throw master_away(away_);
  if (!broken_.empty())
    throw error(fmt::format("this {} no longer gets replies from the master: {}", who, broken_));
  throw worker::given_up(fmt::format("the master has given this {} up", who));
}

EDL_INLINE bool member::join(std::uint64_t layout, std::vector<net::address> const& listening,
                             std::function<bool()> const& stopping) {
  layout_ = layout;
  listening_ = listening;
  for (;;) {
    auto const began = clock::now();
    try {
      net::started_call call = net::start(master_, join_call(worker::master_try));
      while (!call.wait_for(std::chrono::milliseconds(100)))
        if (stopping && stopping()) throw worker::interrupted("shutting down: no master reached");
      auto const reply = wire::unpack<wire::JoinReply>(call.get().message, master_.name());
      if (reply.over() || reply.spare()) {
        node_.options().log.info(reply.over() ? "the job is over: it accepts no more members"
                                              : detail::not_needed);
        finished_ = true;
        return false;
      }
      std::string const refused = fmt::format("the master does not take this process: {}", reply.reason());
      if (reply.given_up()) throw worker::given_up(refused);
      if (!reply.accepted()) throw error(refused);
      break;
    } catch (net::call_error const& e) {
      if (!worker::is_away(e)) throw;
      missed(e, began);
    }
    if (lost_) explain_loss("process");
  }
  std::string const line = absence_.answered(clock::now());
  if (!line.empty()) node_.options().log.info(line);
  auto const failed = [this](std::string const& why) {
    {
      std::lock_guard const guard(lock_);
      broken_ = why;
    }
    lost_ = true;
  };
  net::carry(node_, [this] { return beat(); }, failed);
  net::carry(node_, [this] { return keep_watch(); }, failed);
  return true;
}

// The master is not the one that this member has joined.
EDL_INLINE asio::awaitable<void> member::join_again() {
  net::outgoing const what = join_call(worker::master_try);
  net::reply const answer = co_await master_.call(what);
  auto const reply = wire::unpack<wire::JoinReply>(answer.message, master_.name());
  if (reply.spare()) node_.options().log.info(detail::not_needed);
  if (reply.over() || reply.spare())
    finished_ = true;
  else if (!reply.accepted())
    lost_ = true;
}

EDL_INLINE void member::leave() {
  wire::LeaveRequest request;
  request.set_role(wire::to_message(role_));
  request.set_id(id_);
  request.set_incarnation(incarnation_);
  net::outgoing what{.method = wire::method::leave,
                     .message = wire::pack(request),
                     .timeout = std::chrono::seconds(1),
                     .idempotent = true};
  try {
    net::wait(master_, std::move(what));
  } catch (net::call_error const&) {
    // The master is gone, or will notice the silence.
  }
}

EDL_INLINE asio::awaitable<void> member::keep_watch() {
  asio::steady_timer timer(node_.executor());
  while (!lost_) {
    wire::WatchRequest request;
    request.set_role(wire::to_message(role_));
    request.set_id(id_);
    request.set_incarnation(incarnation_);
    request.set_generation(std::max(announced_, known_ ? known_() : announced_));
    try {
      net::outgoing what{.method = wire::method::watch,
                         .message = wire::pack(request),
                         .timeout = worker::master_call_timeout,
                         .idempotent = true};
      net::reply const answer = co_await master_.call(what);
      auto const reply = wire::unpack<wire::WatchReply>(answer.message, master_.name());
      if (reply.finished()) finished_ = true;
      if (finished_) co_return;
      // Join with what the previous master announced, before `announced_` takes this one's generation.
      if (reply.stranger()) co_await join_again();
      if (lost_ || finished_) co_return;
      announced_ = reply.generation();
      if (changed_ && announced_ > known_()) changed_(announced_);
      continue;
    } catch (net::call_error const&) {
    }
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE asio::awaitable<void> member::beat() {
  asio::steady_timer timer(node_.executor());
  while (!lost_) {
    wire::Heartbeat beat;
    beat.set_role(wire::to_message(role_));
    beat.set_id(id_);
    beat.set_incarnation(incarnation_);
    if (worker::progress const* seen = seen_) {
      beat.set_version(seen->version);
      beat.set_records(seen->records);
      beat.set_loss(seen->loss);
      beat.set_position(seen->position);
      beat.set_pass(seen->pass);
      wire::to_message(seen->trained(), *beat.mutable_trained());
    }
    if (version_) beat.set_version(version_());
    if (notice_) beat.set_notice(notice_());
    beat.set_resident_bytes(detail::resident_bytes());
    auto const began = clock::now();
    try {
      net::outgoing what{.method = wire::method::heartbeat,
                         .message = wire::pack(beat),
                         .timeout = detail::beat_timeout,
                         .idempotent = true};
      net::reply const answer = co_await master_.call(what);
      auto const reply = wire::unpack<wire::HeartbeatReply>(answer.message, master_.name());
      reached_ = true;
      std::string const line = absence_.answered(clock::now());
      if (!line.empty()) node_.options().log.info(line);
      if (reply.spare()) node_.options().log.info(detail::not_needed);
      // Set before `lost_`, so that a thread that sees `lost_` sees this, too.
      if (reply.finished() || reply.spare()) finished_ = true;
      if (reply.leave()) leaves_ = true;
      if (!reply.known() && !reply.stranger()) lost_ = true;
    } catch (net::call_error const& e) {
      if (e.code() == net::status::cancelled) co_return;
      reached_ = false;
      missed(e, began);
    }
    timer.expires_after(std::chrono::seconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace edl::app
