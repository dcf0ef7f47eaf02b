// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <exception>
#include <utility>

#include "edl/base/http/client/client.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::http {
namespace detail {

inline constexpr std::size_t most_idle = 32;
// Shorter than the idle timeout of any server or balancer in between.
inline constexpr std::chrono::seconds longest_rest{30};
inline constexpr std::chrono::milliseconds last_words{200};

}  // namespace detail

EDL_INLINE void client::use(std::shared_ptr<ssl_ctx_st> certificates) {
  std::vector<resting> old;  // closed after the mutex is released
  std::lock_guard const lock(mutex_);
  old.swap(pool_);
  certificates_ = std::move(certificates);
}

EDL_INLINE bool client::has_certificates() const {
  std::lock_guard const lock(mutex_);
  return certificates_ != nullptr;
}

// An idle connection from the pool, or nothing.
EDL_INLINE std::unique_ptr<client_connection> client::reuse() {
  auto const now = clock::now();
  for (;;) {
    resting r;
    {
      std::lock_guard const lock(mutex_);
      if (pool_.empty()) return nullptr;
      r = std::move(pool_.back());
      pool_.pop_back();
    }
    if (now - r.since < detail::longest_rest && r.line->idle()) return std::move(r.line);
  }
}

EDL_INLINE void client::keep(std::unique_ptr<client_connection> line,
                             std::shared_ptr<ssl_ctx_st> const& made_with) {
  std::lock_guard const lock(mutex_);
  invariant(line != nullptr, "a kept connection exists");
  // A connection made with earlier certificates is closed: its peer's identity may no longer be valid.
  if (made_with == certificates_ && pool_.size() < detail::most_idle)
    pool_.push_back({std::move(line), clock::now()});
  invariant(pool_.size() <= detail::most_idle, "no more connections are kept than the limit allows");
}

EDL_INLINE std::string client::text(question const& q) const {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", q.method, q.target, to_.at.authority);
  for (auto const& [name, value] : q.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (!q.body.empty()) out += fmt::format("Content-Length: {}\r\n", q.body.size());
  return out + "\r\n" + q.body;
}

// Sends a request and reads the reply on one connection. `answered`: the reply has begun.
EDL_INLINE response_parser client::exchange(client_connection& line, question const& q, limit const& within,
                                            sink const& take, std::optional<std::chrono::milliseconds> idle,
                                            bool& answered) {
  // A server that rejects a request while it is being sent, and closes, may have sent the reason.
  std::exception_ptr broken;
  try {
    line.send(text(q), within);
  } catch (unreachable const&) {
    broken = std::current_exception();
  }
  auto const time = broken ? limit::of(detail::last_words, within.stopped) : within;
  response_parser head;
  response_parser::sink const piece = [&](std::string_view part) { return take(head, part); };
  std::vector<char> buffer(64 << 10);
  try {
    while (!head.done()) {
      bool const going = idle && head.headed() && head.code() < 300;
      auto const n = line.receive(buffer, going ? limit::of(*idle, within.stopped) : time);
      answered |= n > 0;
      if (n > 0)
        head.feed({buffer.data(), n}, piece);
      else if (!head.end())
        throw unreachable(to_.describe() + " broke off its reply");
    }
  } catch (unreachable const&) {
    if (broken && !answered) std::rethrow_exception(broken);
    throw;
  }
  return head;
}

EDL_INLINE response_parser client::ask(question const& q, limit const& within, sink const& take, bool& sent,
                                       std::optional<std::chrono::milliseconds> idle) {
  std::shared_ptr<ssl_ctx_st> with;
  {
    std::lock_guard const lock(mutex_);
    with = certificates_;
  }
  auto const on = [&](std::unique_ptr<client_connection> line, bool& answered) {
    sent = true;
    auto head = exchange(*line, q, within, take, idle, answered);
    if (head.reusable()) keep(std::move(line), with);
    return head;
  };
  bool answered = false;
  if (auto line = reuse()) {
    try {
      return on(std::move(line), answered);
    } catch (unreachable const&) {
      // Most likely the server had just closed the idle connection. A reply that has begun is not repeated.
      if (answered || !q.harmless || clock::now() >= within.until) throw;
    }
    sent = false;
  }
  return on(std::make_unique<client_connection>(to_, with, within), answered);
}

EDL_INLINE bool client::pause(std::chrono::milliseconds time, time_point end) {
  auto const until = clock::now() + time;
  if (until > end) return false;
  std::unique_lock lock(mutex_);
  return !stopping_.wait_until(lock, until, [&] { return stopped_; });
}

EDL_INLINE void client::stop() {
  std::lock_guard const lock(mutex_);
  stopped_ = true;
  stopping_.notify_all();
}

}  // namespace edl::http
