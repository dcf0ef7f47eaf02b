// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <utility>

#include "edl/base/net/event.hpp"
#include "edl/base/net/status.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/server/orders.hpp"

namespace edl::master {
namespace detail {

inline constexpr std::chrono::milliseconds first_order_pause{50}, longest_order_pause{1'000};

/// Whether a failed call gives no answer, so that it must be repeated.
inline bool unanswered(net::status code) {
  return code == net::status::unavailable || code == net::status::deadline_exceeded ||
         code == net::status::unauthenticated || code == net::status::not_ready;
}

/// Concurrent calls that are awaited together.
struct gathering {
  explicit gathering(asio::any_io_executor on, std::size_t n) : replies(n), left(n), changed(on) {}
  std::vector<std::string> replies;
  std::exception_ptr failed;
  std::size_t left;
  net::event changed;
};

}  // namespace detail

EDL_INLINE asio::awaitable<void> orders::pause(std::chrono::milliseconds d) {
  asio::steady_timer timer(node_.executor(), d);
  co_await timer.async_wait(asio::use_awaitable);
}

EDL_INLINE asio::awaitable<std::string> orders::order(keeper to, net::outgoing what, order_terms terms) {
  waiting_entry const shown(*this, {to, terms.name, {}, clock::now()});
  for (auto rest = detail::first_order_pause;; rest = std::min(2 * rest, detail::longest_order_pause)) {
    std::optional<net::call_error> failed;
    try {
      net::reply answer = co_await to.to->call(what);
      co_return std::move(answer.message);
    } catch (net::call_error const& e) {
      failed.emplace(e);
    }
    bool const current = !terms.generation || decisions_.generation() == *terms.generation;
    if (!current || !keepers_.takes_part(to))
      throw net::call_error(net::status::cancelled,
                            fmt::format("{} is no longer requested from {}", terms.name, to.to->name()));
    bool const late = terms.timeout.count() > 0 && clock::now() - shown->since > terms.timeout;
    bool const again =
        detail::unanswered(failed->code()) && (terms.waits || failed->code() != net::status::not_ready);
    if (late || !again) throw *failed;
    shown->reason = failed->what();
    co_await pause(rest);
  }
}

EDL_INLINE asio::awaitable<std::vector<std::string>> orders::ask_each(std::vector<keeper> target,
                                                                      std::uint16_t method,
                                                                      std::vector<std::string> messages,
                                                                      std::chrono::milliseconds timeout,
                                                                      order_terms terms) {
  auto const g = std::make_shared<detail::gathering>(node_.executor(), target.size());
  for (std::size_t place = 0; place < target.size(); ++place) {
    node_.spawn(
        [this, g, to = target[place], terms,
         what = net::outgoing{.method = method, .message = std::move(messages[place]), .timeout = timeout},
         place]() -> asio::awaitable<void> {
          try {
            std::string answer = co_await order(to, what, terms);
            g->replies[place] = std::move(answer);
          } catch (...) {
            g->failed = std::current_exception();
          }
          --g->left;
          g->changed.notify();
        });
  }
  while (g->left > 0) co_await g->changed.wait();
  if (g->failed) std::rethrow_exception(g->failed);
  co_return g->replies;
}

EDL_INLINE std::vector<std::string> orders::unanswered(time_point now) const {
  std::vector<std::string> all;
  for (waiting const& w : waiting_) {
    if (w.target.to && !keepers_.takes_part(w.target)) continue;
    all.push_back(fmt::format("{} to answer '{}' (for {} s{}{})",
                              w.target.to ? w.target.to->name() : std::string("the storage"), w.operation,
                              std::chrono::duration_cast<std::chrono::seconds>(now - w.since).count(),
                              w.reason.empty() ? "" : ": ", w.reason));
  }
  return all;
}

}  // namespace edl::master
