// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <optional>
#include <utility>

#include "edl/base/net/channel.hpp"
#include "edl/base/net/connection.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/security/handshake.hpp"
#include "edl/base/net/security/secure_socket.hpp"
#include "edl/base/net/time_limit.hpp"
#include "edl/base/net/traffic.hpp"
#include "edl/base/net/transport.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/random.hpp"

namespace edl::net {

struct channel::state : detail::service, std::enable_shared_from_this<channel::state> {
  static constexpr std::chrono::milliseconds first_pause{20}, longest_pause{1'000};

  state(node& on, std::vector<address> peer, std::string n, token const* credential)
      : executor(on.executor()),
        options(on.options()),
        tls(on.tls()),
        addresses(std::move(peer)),
        name(std::move(n)),
        attempt_over(executor),
        seed(std::uint64_t(std::to_integer<int>(draw_nonce()[0])) << 32) {
    if (!credential) return;
    options.secret = *credential;
    tls = tls_context(*credential, options.job);
  }

  // `self` keeps this object alive during the call, even if the channel is destroyed.
  asio::awaitable<reply> call(outgoing const& what, std::shared_ptr<state> self);
  asio::awaitable<std::shared_ptr<connection>> connected(time_point deadline);
  asio::awaitable<void> attempt();
  void shut() override;

  asio::any_io_executor executor;
  node_options options;
  tls_context tls;
  std::vector<address> addresses;
  std::string name;
  std::shared_ptr<connection> current;
  std::shared_ptr<secure_socket> trying;
  event attempt_over;
  bool attempting = false, closed = false;
  std::uint64_t attempts = 0, seed;
  int failures = 0;
  time_point next_attempt = time_point::min();
  std::optional<call_error> last_failure;
  std::atomic<bool> up = false;
};

namespace detail {

struct counted_call {
  bool failed = true;
  ~counted_call() {
    count(total_traffic().calls, 1);
    if (failed) count(total_traffic().failures, 1);
  }
};

}  // namespace detail

// Tries all addresses once, for all calls that wait for a connection.
EDL_INLINE asio::awaitable<void> channel::state::attempt() {
  invariant(attempting && !trying, "one attempt is made at a time");
  std::string why;
  for (auto const& where : addresses) {
    bool late = false;
    std::string failed;
    auto const s = trying = std::make_shared<secure_socket>(executor);
    try {
      detail::time_limit const limit(executor, clock::now() + options.bounds.connect, [s, &late] {
        late = true;
        s->close();
      });
      co_await detail::connect(s->plain(), where, late);
      co_await greet_server(*s, options, tls, where);
    } catch (asio::system_error const& e) {
      failed =
          late ? fmt::format("no reply within {} ms", options.bounds.connect.count()) : e.code().message();
    } catch (std::exception const& e) {
      failed = e.what();
    }
    if (closed) break;
    if (!late && failed.empty()) {
      invariant(!current || current->closed(), "a channel has one open connection at most");
      current = connection::open(std::move(*s), fmt::format("{} ({})", name, place_of(where)), options.bounds,
                                 options.log, handler{}, [me = shared_from_this()] { me->up = false; });
      // The connection may have closed while it was being opened.
      up = !current->closed();
      break;
    }
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", to_string(where), failed);
  }
  invariant(attempting, "an attempt that ends is the current one");
  trying.reset();
  attempting = false;
  ++attempts;  // waiting calls see by this that their attempt is over, even if the next has begun
  if (current && !current->closed()) {
    failures = 0;
    last_failure.reset();
  } else {
    // Half of the pause is random, so that many peers of one lost process do not reconnect at once.
    auto const most = std::min(longest_pause, first_pause * (1 << std::min(failures++, 6)));
    auto const pause = most / 2 + std::chrono::milliseconds(random_stream{seed}.below(
                                      std::uint64_t(most.count() / 2 + 1), attempts));
    next_attempt = clock::now() + pause;
    last_failure = call_error(status::unavailable, fmt::format("{} cannot be reached: {}", name, why));
  }
  invariant((failures == 0) == !last_failure, "a channel with failed attempts knows the reason");
  attempt_over.notify();
}

// Throws the error of the last attempt. No other attempt begins during the pause after it.
EDL_INLINE asio::awaitable<std::shared_ptr<connection>> channel::state::connected(time_point deadline) {
  if (closed) throw call_error(status::cancelled, name + ": the channel is closed");
  if (current && !current->closed()) co_return current;
  if (!attempting) {
    invariant((failures == 0) == !last_failure, "a channel with failed attempts knows the reason");
    if (last_failure && clock::now() < next_attempt) throw *last_failure;
    attempting = true;
    asio::co_spawn(executor, attempt(), [self = shared_from_this()](std::exception_ptr) {});
  }
  for (auto const seen = attempts; seen == attempts && attempting;)
    if (!co_await attempt_over.wait_until(deadline))
      throw call_error(status::deadline_exceeded, name + ": no connection in time");
  if (closed) throw call_error(status::cancelled, name + ": the channel is closed");
  if (!current || current->closed())
    throw last_failure.value_or(call_error(status::unavailable, name + " was lost"));
  co_return current;
}

EDL_INLINE asio::awaitable<reply> channel::state::call(outgoing const& what,
                                                       std::shared_ptr<state> /*self*/) {
  using namespace std::chrono;
  auto const began = clock::now();
  detail::counted_call outcome;
  auto const deadline = began + std::clamp<milliseconds>(what.timeout, milliseconds(0), hours(24 * 365));
  auto lost_since = time_point::max();
  for (;;) {
    std::optional<call_error> failed;
    auto connected_at = time_point::max();
    try {
      auto const c = co_await connected(deadline);
      connected_at = clock::now();
      reply answer = co_await c->call(what, deadline);
      outcome.failed = false;
      detail::count(total_traffic().waited, std::uint64_t(nanoseconds(clock::now() - began).count()));
      co_return answer;
    } catch (call_error const& e) {
      failed.emplace(e);
    } catch (asio::system_error const&) {
      throw call_error(status::cancelled, name + ": the call was cancelled");
    }
    if (!what.idempotent || failed->code() != status::unavailable || closed) throw *failed;
    auto const now = clock::now();
    // A connection that lasted this long was not lost at once: the patience starts anew.
    bool const held = connected_at <= now - what.patience;
    lost_since = held ? now : std::min(lost_since, now);
    if (what.patience > milliseconds(0) && now - lost_since >= what.patience) throw *failed;
    auto const again = std::max(next_attempt, now + (current ? milliseconds(0) : milliseconds(1)));
    if (again >= deadline)
      throw call_error(failed->code(),
                       fmt::format("{} (tried for {} ms)", failed->what(), what.timeout.count()));
    try {
      asio::steady_timer rest(executor, again);
      co_await rest.async_wait(asio::use_awaitable);
    } catch (asio::system_error const&) {
      throw call_error(status::cancelled, name + ": the call was cancelled");
    }
  }
}

EDL_INLINE void channel::state::shut() {
  if (std::exchange(closed, true)) return;
  invariant(!trying || attempting, "a socket that is tried belongs to an attempt");
  if (trying) trying->close();
  if (current) current->close(status::cancelled, "this process closes the channel");
  attempt_over.notify();
}

EDL_INLINE channel::channel(node& on, std::vector<address> const& peer, std::string name,
                            token const* credential)
    : node_(on) {
  if (peer.empty()) throw error(name + " has no address");
  auto ordered = peer;
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](auto const& a) { return a.over == address::transport::local; });
  state_ = std::make_shared<state>(on, std::move(ordered), std::move(name), credential);
  invariant(!state_->addresses.empty(), "a channel leads to some address");
  node_.attach(state_);
}

EDL_INLINE channel::~channel() { close(); }

EDL_INLINE asio::awaitable<reply> channel::call(outgoing const& what) { return state_->call(what, state_); }

EDL_INLINE std::string const& channel::name() const { return state_->name; }
EDL_INLINE bool channel::connected() const { return state_->up; }
EDL_INLINE void channel::close() {
  node_.post([s = state_] { s->shut(); });
}

}  // namespace edl::net
