// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/job/master/server/journal_keeper.hpp"

namespace edl::master {

EDL_INLINE void journal_keeper::keep(persisted_state now, bool promised) {
  newest_ = std::move(now);
  ++requested_;
  if (promised) promised_ = requested_;
  if (journal_.path().empty()) {
    done_ = requested_;
    generation_ = newest_.generation;
  } else if (!std::exchange(writing_, true)) {
    node_.spawn([this] { return write(); });
  }
}

EDL_INLINE std::string journal_keeper::try_to_write(persisted_state const& now, forced what) try {
  journal_.write(now, what);
  return {};
} catch (std::exception const& e) {
  return e.what();
}

EDL_INLINE asio::awaitable<void> journal_keeper::write() {
  asio::steady_timer timer(node_.executor());
  while (done_ < requested_ || failing_) {
    std::uint64_t const number = requested_, generation = newest_.generation;
    forced const what = promised_ > done_ ? forced::name : forced::content;
    std::string failed;
    std::function<void()> const work = [&, now = newest_] { failed = try_to_write(now, what); };
    co_await disk_.run(journal_.path(), work);
    if (!failed.empty() && !failing_)
      log_.error(fmt::format(
          "{}; retrying; until a write succeeds, a successor of this master would know less", failed));
    failing_ = !failed.empty();
    if (!failing_) {
      done_ = number;
      generation_ = generation;
    }
    on_kept_();
    if (!failing_) continue;
    timer.expires_after(pause_);
    co_await timer.async_wait(asio::use_awaitable);
  }
  writing_ = false;
}

}  // namespace edl::master
