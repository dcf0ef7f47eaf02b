// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <pthread.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <csignal>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "edl/base/net/node.hpp"
#include "edl/base/net/status.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

struct node::state {
  explicit state(node_options o) : options(std::move(o)), tls(options.secret, options.job) {}

  void run() {
    for (;;) try {
        io.run();
        return;
      } catch (...) {
        // Coroutines of this library do not throw; work that callers post might.
        tell_failure();
      }
  }

  /// Logs the exception that is being handled.
  void tell_failure() const {
    std::string why = "it threw something other than a std::exception";
    try {
      throw;
    } catch (std::exception const& e) {
      why = e.what();
    } catch (...) {
    }
    options.log.error(fmt::format("work on the network's thread failed: {}", why));
  }

  node_options options;
  tls_context tls;
  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> keep{io.get_executor()};
  std::list<asio::cancellation_signal> spawned;  // on the thread only
  std::mutex mutex;                              // guards what follows
  std::vector<std::weak_ptr<detail::service>> parts;
  bool stopping = false;
  std::mutex joining;
  std::thread thread;
};

EDL_INLINE node::node(node_options options) {
  if (options.job.empty() || options.job.size() > 200)
    throw error(fmt::format("a job's name has 1 to 200 bytes, this one {}", options.job.size()));
  if (!options.self.name.empty() && !is_identity(to_string(options.self)))
    throw error(fmt::format("'{}' is not an identity: letters, digits, '-', '_' and '.'", options.self.name));
  state_ = std::make_unique<state>(std::move(options));
  // Signals are left to the threads of the program that uses this.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    state_->thread = std::thread([s = state_.get()] { s->run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

EDL_INLINE node::~node() { stop(); }

EDL_INLINE node_options const& node::options() const { return state_->options; }

EDL_INLINE tls_context const& node::tls() const { return state_->tls; }

EDL_INLINE asio::any_io_executor node::executor() const { return state_->io.get_executor(); }

EDL_INLINE bool node::on_thread() const { return state_->io.get_executor().running_in_this_thread(); }

EDL_INLINE bool node::post(std::function<void()> work) {
  std::lock_guard const lock(state_->mutex);
  if (state_->stopping) return false;
  asio::post(state_->io, std::move(work));
  return true;
}

EDL_INLINE bool node::spawn(std::function<asio::awaitable<void>()> work) {
  return post([s = state_.get(), work = std::move(work)] {
    auto const entry = s->spawned.emplace(s->spawned.end());
    asio::co_spawn(
        s->io,
        [s, work]() -> asio::awaitable<void> {
          try {
            co_await work();
          } catch (...) {
            // Cancellation is an exception, too; once the node stops it is not worth a line.
            bool stopping = false;
            {
              std::lock_guard const lock(s->mutex);
              stopping = s->stopping;
            }
            if (!stopping) s->tell_failure();
          }
        },
        asio::bind_cancellation_slot(entry->slot(), [s, entry](std::exception_ptr) {
          // The coroutine still uses this signal until it has returned.
          asio::post(s->io, [s, entry] { s->spawned.erase(entry); });
        }));
  });
}

EDL_INLINE void node::attach(std::weak_ptr<detail::service> part) {
  std::lock_guard const lock(state_->mutex);
  if (state_->stopping) throw call_error(status::cancelled, "the network of this process is stopping");
  std::erase_if(state_->parts, [](auto const& p) { return p.expired(); });
  state_->parts.push_back(std::move(part));
}

EDL_INLINE void node::stop() {
  {
    std::lock_guard const lock(state_->mutex);
    if (!std::exchange(state_->stopping, true))
      asio::post(state_->io, [s = state_.get()] {
        std::vector<std::weak_ptr<detail::service>> parts;
        {
          std::lock_guard const inner(s->mutex);
          parts.swap(s->parts);
        }
        for (auto const& weak : parts)
          if (auto const part = weak.lock()) part->shut();
        for (auto& signal : s->spawned) signal.emit(asio::cancellation_type::terminal);
        invariant(s->keep.has_value(), "a node stops once");
        s->keep.reset();  // last: `run` returns as soon as nothing is left to do
      });
  }
  if (on_thread()) return;  // a thread cannot wait for its own end
  std::lock_guard const lock(state_->joining);
  if (state_->thread.joinable()) state_->thread.join();
  invariant(!state_->thread.joinable(), "a node that has stopped has no thread");
}

}  // namespace edl::net
