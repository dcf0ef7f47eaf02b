// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "edl/core/cores.hpp"
#include "edl/core/inline.hpp"
#include "edl/device/cpu/team.hpp"

namespace edl {
namespace detail {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits, without sleeping, for `ready` to come true, for as long as operations follow each other within a
/// step.
template <class Ready>
void spin(Ready&& ready) {
  auto const until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
  while (!ready() && std::chrono::steady_clock::now() < until)
    for (int i = 0; i < 16 && !ready(); ++i) relax();
}

}  // namespace detail

struct thread_team::state {
  void (*work)(void*, int) = nullptr;
  void* context = nullptr;
  int parts = 0;
  alignas(64) std::atomic<std::uint32_t> round{0};
  alignas(64) std::atomic<std::uint32_t> done{0};  // parts of this round, the caller's not counted
  bool over = false;
  std::vector<std::thread> threads;

  void serve(int part) {
    for (std::uint32_t seen = 0;;) {
      detail::spin([&] { return round.load(std::memory_order_acquire) != seen; });
      round.wait(seen, std::memory_order_acquire);
      // Everybody is waited for in every round, so that nobody can miss one.
      ++seen;
      if (over) return;
      if (part < parts) work(context, part);
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == std::uint32_t(threads.size()))
        done.notify_one();
    }
  }

  void begin() {
    done.store(0, std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
  }

  void finish() {
    auto const all = std::uint32_t(threads.size());
    detail::spin([&] { return done.load(std::memory_order_acquire) == all; });
    for (std::uint32_t now = done.load(std::memory_order_acquire); now != all;
         now = done.load(std::memory_order_acquire))
      done.wait(now, std::memory_order_acquire);
  }

  ~state() {
    over = true;
    begin();
    for (std::thread& t : threads) t.join();
  }
};

EDL_INLINE thread_team::thread_team(int size) {
  if (size <= 1) return;
  state_ = std::make_unique<state>();
  state_->threads.reserve(std::size_t(size) - 1);
  // The caller's threads to come would inherit a place of its own, so it gets none, but the one that is left.
  std::vector<int> const places = own_processors(size);
  // Nobody reads the number of threads before the first round.
  for (int part = 1; part < size; ++part) try {
      state_->threads.emplace_back(
          [s = state_.get(), part, place = places.empty() ? -1 : places[std::size_t(part)]] {
            if (place >= 0) pin_to(place);
            s->serve(part);
          });
    } catch (std::system_error const&) {
      break;
    }
  size_ = 1 + int(state_->threads.size());
}

EDL_INLINE thread_team::~thread_team() = default;

EDL_INLINE thread_team::thread_team(thread_team&& other) noexcept
    : size_(std::exchange(other.size_, 1)), state_(std::move(other.state_)) {}

EDL_INLINE thread_team& thread_team::operator=(thread_team&& other) noexcept {
  std::swap(size_, other.size_);
  std::swap(state_, other.state_);
  return *this;
}

EDL_INLINE void thread_team::start(int parts, void (*work)(void*, int), void* context) {
  state& s = *state_;
  s.work = work;
  s.context = context;
  s.parts = std::min(parts, size_);
  s.begin();
  work(context, 0);
  s.finish();
}

}  // namespace edl
