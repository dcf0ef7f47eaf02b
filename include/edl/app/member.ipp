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
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/net/blocking.hpp"
#include "edl/net/status.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "edl/worker/remote.hpp"

namespace edl::app {
namespace detail {

inline std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * std::uint64_t(::sysconf(_SC_PAGESIZE));
}

inline wire::JoinRequest::Role role_of(member::kind k) {
  return k == member::kind::server ? wire::JoinRequest::SERVER : wire::JoinRequest::WORKER;
}

}  // namespace detail

EDL_INLINE member::member(net::node& on, net::channel& master, kind what, std::uint32_t id)
    : node_(on),
      master_(master),
      kind_(what),
      id_(id),
      incarnation_(on.options().self.incarnation ? on.options().self.incarnation : draw_incarnation()) {}

EDL_INLINE net::outgoing member::join_call() const {
  wire::JoinRequest request;
  request.set_role(detail::role_of(kind_));
  request.set_id(id_);
  request.set_incarnation(incarnation_);
  request.set_layout(layout_);
  if (known_) request.set_held(known_());
  if (held_)
    for (std::uint32_t const range : held_()) request.add_ranges(range);
  for (net::address const& a : listening_) request.add_addresses(net::to_string(a));
  return {.method = wire::method::join,
          .message = wire::pack(request),
          .timeout = worker::master_patience,
          .idempotent = true};
}

EDL_INLINE void member::join(std::uint64_t layout, std::vector<net::address> const& listening) {
  layout_ = layout;
  listening_ = listening;
  auto const reply = wire::unpack<wire::JoinReply>(net::wait(master_, join_call()).message, master_.name());
  if (!reply.accepted())
    throw error(fmt::format("the master does not take this process: {}", reply.reason()));
  node_.spawn([this] { return beat(); });
  node_.spawn([this] { return keep_watch(); });
}

// The master is another than the one that was joined.
EDL_INLINE asio::awaitable<void> member::join_again() {
  net::outgoing const what = join_call();
  net::reply const answer = co_await master_.call(what);
  auto const reply = wire::unpack<wire::JoinReply>(answer.message, master_.name());
  if (!reply.accepted()) lost_ = true;
}

EDL_INLINE void member::leave() {
  wire::LeaveRequest request;
  request.set_role(detail::role_of(kind_));
  request.set_id(id_);
  request.set_incarnation(incarnation_);
  net::outgoing what{.method = wire::method::leave,
                     .message = wire::pack(request),
                     .timeout = std::chrono::seconds(1),
                     .idempotent = true};
  try {
    net::wait(master_, std::move(what));
  } catch (net::call_error const&) {
    // The master is gone, or finds out by the silence.
  }
}

EDL_INLINE asio::awaitable<void> member::keep_watch() {
  asio::steady_timer timer(node_.executor());
  std::uint64_t told = 0;
  for (;;) {
    wire::WatchRequest request;
    request.set_role(detail::role_of(kind_));
    request.set_id(id_);
    request.set_incarnation(incarnation_);
    request.set_generation(std::max(told, known_ ? known_() : told));
    try {
      net::outgoing what{.method = wire::method::watch,
                         .message = wire::pack(request),
                         .timeout = worker::master_patience,
                         .idempotent = true};
      net::reply const answer = co_await master_.call(what);
      auto const reply = wire::unpack<wire::WatchReply>(answer.message, master_.name());
      told = reply.generation();
      if (reply.finished()) finished_ = true;
      if (finished_) co_return;
      if (reply.stranger()) co_await join_again();
      if (changed_ && told > known_()) changed_(told);
      continue;
    } catch (net::call_error const&) {
    }
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE asio::awaitable<void> member::beat() {
  asio::steady_timer timer(node_.executor());
  for (;;) {
    wire::Heartbeat beat;
    beat.set_role(detail::role_of(kind_));
    beat.set_id(id_);
    beat.set_incarnation(incarnation_);
    if (worker::progress const* seen = seen_) {
      beat.set_version(seen->version);
      beat.set_records(seen->records);
      beat.set_loss(seen->loss);
      beat.set_position(seen->position);
    }
    if (version_) beat.set_version(version_());
    beat.set_resident_bytes(detail::resident_bytes());
    try {
      net::outgoing what{.method = wire::method::heartbeat,
                         .message = wire::pack(beat),
                         .timeout = worker::master_patience,
                         .idempotent = true};
      net::reply const answer = co_await master_.call(what);
      auto const reply = wire::unpack<wire::HeartbeatReply>(answer.message, master_.name());
      if (!reply.known() && !reply.stranger()) lost_ = true;
      if (reply.finished()) finished_ = true;
    } catch (net::call_error const&) {
      lost_ = true;
    }
    timer.expires_after(std::chrono::seconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace edl::app
