// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "edl/compute/device/cpu/crowd.hpp"
#include "edl/compute/device/cpu/team.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/inline.hpp"

namespace edl {
namespace detail {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // as long as x86's pause; `yield` does nothing where a core has one thread
#else
  std::this_thread::yield();
#endif
}

using spin_clock = crowd::clock;

/// Spins until `ready` becomes true.
template <class Ready>
void spin(Ready&& ready, spin_clock::duration longest) {
  auto const until = spin_clock::now() + longest;
  while (!ready() && spin_clock::now() < until)
    for (int i = 0; i < 16 && !ready(); ++i) relax();
}

/// How long a thread spins for the next work within a step before it sleeps.
inline spin_clock::duration longest_spin(bool crowded) {
  return std::chrono::microseconds(crowded ? 5 : 200);
}

/// How many forks have led to this process since the first call. A child process has none of its parent's
/// threads.
inline unsigned forks() {
  static std::atomic<unsigned> count{0};
  static int const registered = ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  static_cast<void>(registered);
  return count.load(std::memory_order_relaxed);
}

}  // namespace detail

struct thread_team::state {
  /// The state of one thread: the newest round whose part was taken, by the thread or by the caller.
  struct alignas(64) place {
    std::atomic<std::uint32_t> taken{0};

    bool take(std::uint32_t next) {
      std::uint32_t before = next - 1;
      return taken.load(std::memory_order_relaxed) == before &&
             taken.compare_exchange_strong(before, next, std::memory_order_acq_rel);
    }
  };

  explicit state(int size) : places(std::size_t(size)) {}

  void (*work)(void*, int) = nullptr;
  void* context = nullptr;
  int parts = 0;
  alignas(64) std::atomic<std::uint32_t> round{0};
  alignas(64) std::atomic<std::uint32_t> done{0};  // parts of this round that their threads have done
  bool over = false, late = false;
  unsigned const made_at = detail::forks();
  detail::crowd callers{detail::spin_clock::now()};  // whether the caller's processor is shared
  std::vector<place> places;                         // by part
  std::vector<std::thread> threads;

  void serve(int part) {
    detail::crowd crowd(detail::spin_clock::now());
    bool crowded = false;
    for (std::uint32_t seen = 0;;) {
      auto const begun = [&] { return round.load(std::memory_order_acquire) != seen; };
      detail::spin(begun, detail::longest_spin(crowded));
      if (!begun()) crowded = crowd.here(detail::spin_clock::now(), detail::processors_lost);
      round.wait(seen, std::memory_order_acquire);
      seen = round.load(std::memory_order_acquire);
      // The caller waits for a part that was taken, and until then the round does not change.
      if (!places[std::size_t(part)].take(seen)) continue;
      if (over) return;
      if (part < parts) work(context, part);
      done.fetch_add(1, std::memory_order_acq_rel);
      done.notify_one();
    }
  }

  void begin() {
    done.store(0, std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
  }

  // If other programs keep the processors busy, a thread may not run for longer than the whole work takes. So
  // the caller waits for as long as its own part took, or less if that was in vain before, and then takes the
  // parts that no thread has begun.
  void finish(detail::spin_clock::duration own) {
    std::uint32_t const now = round.load(std::memory_order_relaxed);
    auto left = std::uint32_t(threads.size());
    auto const all = [&] { return done.load(std::memory_order_acquire) == left; };
    bool const crowded = late && callers.here(detail::spin_clock::now(), detail::processors_lost);
    detail::spin(all, crowded ? std::min(own / 4, detail::longest_spin(true)) : late ? own / 4 : own);
    late = !all();
    if (late)
      for (int part = 1; part <= int(threads.size()); ++part) {
        if (!places[std::size_t(part)].take(now)) continue;
        --left;
        if (part < parts) work(context, part);
      }
    detail::spin(all, detail::longest_spin(crowded));
    for (std::uint32_t seen = done.load(std::memory_order_acquire); seen != left;
         seen = done.load(std::memory_order_acquire))
      done.wait(seen, std::memory_order_acquire);
  }

  bool inherited() const { return made_at != detail::forks(); }

  ~state() {
    if (inherited()) {  // the threads exist only in the parent: they can neither be joined nor detached here
      static_cast<void>(new std::vector(std::move(threads)));  // NOLINT: leaked on purpose
      return;
    }
    over = true;
    begin();
    for (std::thread& t : threads) t.join();
  }
};

EDL_INLINE thread_team::thread_team(int size) {
  if (size <= 1) return;
  state_ = std::make_unique<state>(size);
  state_->threads.reserve(std::size_t(size) - 1);
  // Threads that the caller starts later would inherit its affinity, so it is not pinned; it gets the
  // processor that is left.
  std::vector<int> const places = own_processors(size);
  // No thread reads the number of threads before the first round.
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
  if (state_->inherited()) {
    *this = thread_team(size_);
    if (size_ == 1) {
      for (int part = 0; part < parts; ++part) work(context, part);
      return;
    }
  }
  state& s = *state_;
  s.work = work;
  s.context = context;
  s.parts = std::min(parts, size_);
  s.begin();
  auto const began = detail::spin_clock::now();
  work(context, 0);
  s.finish(detail::spin_clock::now() - began);
}

}  // namespace edl
