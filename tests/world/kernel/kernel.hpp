// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "world/world.hpp"

namespace world {

struct process;
struct host;

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
/// Of every history: 2026-01-01, in ns.
inline constexpr std::int64_t epoch_begin = 1'767'225'600'000'000'000;

/// SplitMix64: a stream of numbers of a seed.
struct random_stream {
  std::uint64_t state = 0;
  std::uint64_t next();
  std::uint64_t below(std::uint64_t n);  ///< 0 of none
  double fraction();
  double exponential(double mean);
};

/// A thread of a simulated process. An OS thread of its own lends it a stack and thread-local memory, and
/// waits until it has ended: all of them run on one other OS thread, which goes from stack to stack. So to
/// exchange two asks nothing of the real kernel.
struct thread {
  enum class state { ready, running, blocked, gone };
  std::uint32_t number = 0;
  process* of = nullptr;
  state is = state::ready;
  std::uint64_t sleep = 0;  ///< counts its waits, so that late alarms find another
  bool late = false;        ///< the last wait ended by its time
  int held = 0;             ///< locks: who holds some does not yield
  int clock_reads = 0;      ///< since it last ran: who spins must let others go on
  char const* waits_for = "";
  std::uint64_t signal_mask = 0;
  pthread_t real = {};
  void* (*entry)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  bool detached = false, ending = false;
  char* stack_top = nullptr;          ///< above its own frames
  char* stack = nullptr;              ///< where it goes on
  void* local = nullptr;              ///< its thread-local memory
  std::uint32_t lent = 0, ended = 0;  ///< futexes: of its OS thread
  std::vector<thread*> joiners;
};

/// Threads that wait for one thing.
struct wait_queue {
  std::vector<thread*> those;
  void wake_one();
  void wake_all();
  bool empty() const { return those.empty(); }
};

/// The scheduler and virtual time of a history. All members are for the thread that runs.
struct kernel {
  explicit kernel(history_options o);

  history_options options;
  std::int64_t now = 0;
  std::uint64_t hash, events = 0, switches = 0;
  random_stream schedule, network, storage, entropy, driver;
  std::string failure;
  std::vector<std::function<void(line const&)>> line_listeners;
  std::vector<std::function<void(pid, ending const&)>> end_listeners;
  std::vector<std::function<void(call const&)>> call_listeners;

  /// Blocks the calling thread until it is woken, or until that time: false.
  bool block(std::int64_t until, char const* for_what);
  bool block(wait_queue& in, std::int64_t until, char const* for_what);
  void sleep_until(std::int64_t when);
  void wake(thread& t);
  /// Lets another thread run, if one is ready.
  void yield();
  /// A place where threads may be exchanged, as the seed says.
  void preempt();
  /// The queue of threads that wait at an address: locks, conditions, futexes.
  bool park(void const* at, std::int64_t until, char const* for_what);
  int unpark(void const* at, int most);

  void at(std::int64_t when, std::function<void()> what);

  thread& make_thread(process& of);
  void start_os_thread(thread& t, pthread_attr_t const* how);
  /// The calling thread never runs again.
  [[noreturn]] void retire();
  /// Takes a thread of a process that has ended out of all queues.
  void drop(thread& t);

  /// Adds to the history's hash, and to its trace.
  void note(char const* what, std::uint64_t a = 0, std::uint64_t b = 0);
  void note(char const* what, std::string_view text);
  void called(char const* what, std::string_view on);  ///< by the calling thread's process
  void serve(process& first);                          ///< whose process the scheduler's own thread is of
  void begin();                                        ///< lets the first thread run
  [[noreturn]] void finish(std::string why);
  std::string describe_threads() const;

  std::deque<thread> threads;
  /// Within its process: one that has ended and is not joined yet has a number that others may have, too.
  std::map<std::pair<process*, pthread_t>, thread*> by_real;
  std::vector<thread*> ready;

 private:
  friend void run_entry();
  friend void* carry_threads(void*);
  struct alarm {
    std::int64_t when;
    std::uint64_t order;
    thread* who;
    std::uint64_t sleep;
    std::function<void()> what;
    bool operator<(alarm const& o) const { return when != o.when ? when > o.when : order > o.order; }
  };
  thread& choose();
  void fire_due();
  void hand_over();
  bool stale(alarm const& a) const;

  std::vector<alarm> alarms_;
  std::uint64_t alarm_count_ = 0;
  std::unordered_map<void const*, wait_queue> parked_;
  thread carrier_;           // the OS thread on which all run, while none does
  thread* ended_ = nullptr;  // by which it was left
  void flush_trace(std::size_t from);

  int trace_ = -1;
  std::string traced_;
};

extern kernel* os;                 ///< null: no history
extern thread_local thread* self;  ///< null: a thread of no history; what it calls is the real libc

/// The next definition of a function of libc behind this program's own.
void* next_symbol(char const* name);
template <class Function>
Function* next(char const* name) {
  return reinterpret_cast<Function*>(next_symbol(name));
}

/// Between OS threads: the real kernel's.
void post(std::uint32_t& futex);
void await(std::uint32_t& futex);

}  // namespace world
