// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/carry.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/platform/launcher.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/process_message.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"

namespace edl::platform {
namespace detail {

inline constexpr std::chrono::seconds longest_wait{5};

// The first order number of a master, chosen at random to be far from other masters' numbers.
inline std::uint64_t random_order() {
  net::nonce const drawn = net::draw_nonce();
  std::uint64_t n = 0;
  std::memcpy(&n, drawn.data(), sizeof n);
  return n | 1;
}

}  // namespace detail

EDL_INLINE launcher::launcher(net::node& on, std::string const& directory, std::string program,
                              std::vector<std::string> command, std::function<void(ending const&)> on_end,
                              line_reader* said)
    : node_(on), on_end_(std::move(on_end)), ended_(on.executor()) {
  net::address const here = net::parse_address("unix:" + directory + "/launcher");
  auto const on_ending = [this](ending const& e) {
    if (e.who.role == role::master) return on_end_(e);
    node_.post([this, e] {
      if (start& s = newest_[e.who]; s.order == e.order) s.ended = true;
      endings_.push_back(e);
      ended_.notify();
    });
  };
  processes_ = std::make_unique<processes>(std::move(program), std::move(command), on_ending, said);
  listener_ = std::make_unique<net::listener>(
      node_, std::vector{here}, [this](net::request& r) { return handle(r); },
      net::listener_options{.credential = credential_});
}

EDL_INLINE launcher::~launcher() {
  listener_.reset();  // first, so that no master can start another process
  processes_.reset();
}

EDL_INLINE std::string launcher::address() const { return net::to_string(listener_->addresses().front()); }

EDL_INLINE void launcher::start_master(environment const& env) { processes_->start({role::master, 0}, env); }

EDL_INLINE void launcher::stop_master(std::chrono::milliseconds grace) {
  processes_->stop({role::master, 0}, grace);
}

EDL_INLINE void launcher::let_leave(pid_t pid, bool stop_requested) {
  processes_->let_leave(pid, stop_requested);
}

EDL_INLINE void launcher::stop_all(std::chrono::milliseconds grace) { processes_->stop_all(grace); }

EDL_INLINE asio::awaitable<void> launcher::handle(net::request& r) {
  switch (r.method()) {
    case wire::method::start_process: {
      auto const m = wire::unpack<wire::StartProcess>(r.message(), r.peer());
      process_id const who = wire::from_message(m.who());
      if (who.role == role::master)
        throw net::call_error(net::status::invalid, "a launcher starts no master for another process");
      bool const server = who.role == role::server;
      environment env{{"EDL_ROLE", to_string(who.role)},
                      {server ? "PS_ID" : "WORKER_ID", std::to_string(who.id)}};
      for (auto const& v : m.variables()) {
        if (std::ranges::find(start_variables, v.name()) == start_variables.end())
          throw net::call_error(net::status::invalid,
                                fmt::format("a launcher sets no variable '{}'", printable(v.name(), 100)));
        env.emplace_back(v.name(), v.value());
      }
      // The master repeats an order whose reply was lost.
      if (m.order() != 0 && std::exchange(last_start_, m.order()) == m.order()) break;
      newest_[who] = {.order = m.order()};
      processes_->start(who, env, m.order());
      break;
    }
    case wire::method::stop_process: {
      auto const m = wire::unpack<wire::StopProcess>(r.message(), r.peer());
      std::chrono::milliseconds const grace(m.grace_ms());
      if (m.has_who())
        processes_->stop(wire::from_message(m.who()), grace);
      else  // the process needs time to end
        co_await asio::co_spawn(stopper_, stop_others(grace), asio::use_awaitable);
      break;
    }
    case wire::method::process_events:
      co_return co_await tell(r);
    default:
      throw net::call_error(net::status::unknown_method,
                            fmt::format("a launcher knows no method {}", r.method()));
  }
  std::string const answer = wire::pack(wire::Empty{});
  co_await r.reply(answer);
}

EDL_INLINE asio::awaitable<void> launcher::stop_others(std::chrono::milliseconds grace) {
  processes_->stop_all(grace, false);
  co_return;
}

EDL_INLINE asio::awaitable<void> launcher::tell(net::request& r) {
  auto const m = wire::unpack<wire::ProcessEventsRequest>(r.message(), r.peer());
  auto const until = std::chrono::steady_clock::now() + detail::longest_wait;
  // GCC 12 awaits the right operand of && whatever the left one is.
  while (m.wait() && endings_.size() <= m.after()) {
    bool const in_time = co_await ended_.wait_until(until);
    if (!in_time) break;
  }
  wire::ProcessEventsReply reply;
  for (std::uint64_t i = m.after(); i < endings_.size(); ++i) {
    ending const& e = endings_[i];
    auto& out = *reply.add_endings();
    wire::to_message(e.who, *out.mutable_who());
    out.set_code(e.code);
    out.set_signal(e.signal);
    out.set_asked(e.stop_requested);
    out.set_memory(e.memory);
    out.set_words(e.words);
    out.set_order(e.order);
    out.set_superseded(newest_[e.who].order != e.order);
  }
  // A process that has just ended may not be removed yet.
  for (process_id const& who : processes_->all())
    if (!newest_[who].ended) wire::to_message(who, *reply.add_running());
  std::string const answer = wire::pack(reply);
  co_await r.reply(answer);
}

EDL_INLINE launched::launched(net::node& on, std::string const& address, net::token const& credential,
                              environment common, std::uint64_t seen, observer& to)
    : node_(on),
      launcher_(std::make_shared<net::channel>(on, std::vector{net::parse_address(address)}, "the launcher",
                                               &credential)),
      common_(std::move(common)),
      seen_(seen),
      orders_given_(detail::random_order()),
      to_(to) {
  net::carry(
      node_, [this] { return follow(); },
      [this](std::string const& why) { to_.failed("cannot watch the job's processes: " + why); });
}

EDL_INLINE asio::awaitable<void> launched::follow() {
  asio::steady_timer timer(node_.executor());
  for (bool first = true;;) {
    wire::ProcessEventsRequest request;
    request.set_after(seen_);
    request.set_wait(!first);
    net::outgoing const what{
        .method = wire::method::process_events, .message = wire::pack(request), .idempotent = true};
    try {
      net::reply const answer = co_await launcher_->call(what);
      auto const m = wire::unpack<wire::ProcessEventsReply>(answer.message, launcher_->name());
      std::vector<process_id> running;
      for (auto const& who : m.running()) running.push_back(wire::from_message(who));
      for (auto const& e : m.endings()) {
        ++seen_;
        process_id const who = wire::from_message(e.who());
        ending const how{.who = who,
                         .code = int(e.code()),
                         .signal = int(e.signal()),
                         .stop_requested = e.asked(),
                         .memory = e.memory(),
                         .words = e.words(),
                         .order = e.order()};
        // An older journal may not contain that an end was handled, and the replacement may be on its way.
        auto const mine = newest_.find(who);
        if (mine == newest_.end() ? e.superseded() : mine->second != e.order())
          succeeded(how);
        else
          to_.ended(how, seen_);
      }
      if (std::exchange(first, false)) to_.found({.running = running});
      continue;
    } catch (net::call_error const&) {
    }
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

// This needs no action, and a person who looks for a crash finds it.
EDL_INLINE void launched::succeeded(ending const& how) {
  if (!how.failed()) return;
  node_.options().log.warning(
      fmt::format("{} {}; its successor had been requested by then", to_string(how.who), describe(how)));
}

EDL_INLINE void launched::order(std::uint16_t method, std::string message) {
  node_.post([this, method, message = std::move(message)] {
    orders_.push_back({.method = method, .message = message, .idempotent = true});
    if (orders_.size() > 1) return;  // `deliver` will handle it
    net::carry(
        node_, [this] { return deliver(); },
        [this](std::string const& why) { to_.failed("the launcher rejected an order: " + why); });
  });
}

EDL_INLINE asio::awaitable<void> launched::deliver() {
  asio::steady_timer timer(node_.executor());
  while (!orders_.empty()) {
    bool again = false;
    try {
      co_await launcher_->call(orders_.front());
    } catch (net::call_error const& e) {
      again = e.code() == net::status::unavailable || e.code() == net::status::deadline_exceeded;
      if (!again) throw;
    }
    invariant(!orders_.empty(), "an order stays the first until it is answered");
    if (!again) {
      orders_.pop_front();
      continue;
    }
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

EDL_INLINE void launched::start(process_id who, std::optional<std::uint32_t>) {
  wire::StartProcess m;
  wire::to_message(who, *m.mutable_who());
  std::uint64_t const before = newest_[who];
  m.set_order(newest_[who] = ++orders_given_);
  invariant(newest_[who] != before, "each start of a process has a number of its own");
  for (auto const& [name, value] : common_) {
    auto& v = *m.add_variables();
    v.set_name(name);
    v.set_value(value);
  }
  order(wire::method::start_process, wire::pack(m));
}

EDL_INLINE void launched::stop_all(std::chrono::milliseconds grace) {
  wire::StopProcess m;
  m.set_grace_ms(std::uint32_t(grace.count()));
  node_.post([this] {  // requests that have not been made yet are void
    if (orders_.size() > 1) orders_.erase(orders_.begin() + 1, orders_.end());
  });
  net::outgoing what{.method = wire::method::stop_process, .message = wire::pack(m)};
  try {
    net::wait(*launcher_, std::move(what));
  } catch (net::call_error const&) {
    // The launcher does so by itself when the master has ended.
  }
}

EDL_INLINE void launched::stop(process_id who, std::chrono::milliseconds grace) {
  wire::StopProcess m;
  wire::to_message(who, *m.mutable_who());
  m.set_grace_ms(std::uint32_t(grace.count()));
  order(wire::method::stop_process, wire::pack(m));
}

}  // namespace edl::platform
