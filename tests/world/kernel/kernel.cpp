// SPDX-License-Identifier: Apache-2.0
#include "world/kernel/kernel.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "world/kernel/process.hpp"
#include "world/libc/raw.hpp"

namespace world {

void* reap_threads(void*);

kernel* os = nullptr;
thread_local thread* self = nullptr;

void* next_symbol(char const* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (!found) raw::die("no such function in libc: ", name);
  return found;
}

// ---- Random numbers ----

std::uint64_t random_stream::next() {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

std::uint64_t random_stream::below(std::uint64_t n) {
  return n == 0 ? 0 : std::uint64_t((static_cast<unsigned __int128>(next()) * n) >> 64);
}

double random_stream::fraction() { return double(next() >> 11) * 0x1p-53; }

double random_stream::exponential(double mean) { return -mean * std::log1p(-fraction()); }

// ---- The baton ----

void post_baton(std::uint32_t& baton) {
  __atomic_store_n(&baton, 1u, __ATOMIC_RELEASE);
  raw::call(SYS_futex, long(&baton), FUTEX_WAKE_PRIVATE, 1);
}

void await_baton(std::uint32_t& baton) {
  while (__atomic_load_n(&baton, __ATOMIC_ACQUIRE) == 0)
    raw::call(SYS_futex, long(&baton), FUTEX_WAIT_PRIVATE, 0, 0);
  __atomic_store_n(&baton, 0u, __ATOMIC_RELAXED);
}

// ---- Scheduling ----

kernel::kernel(history_options o) : options(std::move(o)), hash(options.seed) {
  random_stream all{options.seed};
  for (random_stream* s : {&schedule, &network, &storage, &entropy, &driver}) s->state = all.next();
  if (!options.trace.empty()) {
    trace_ = int(raw::call(SYS_open, long(options.trace.c_str()), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    if (trace_ < 0) raw::die("cannot write ", options.trace);
  }
  pthread_t reaper;
  static auto* const create = next<decltype(pthread_create)>("pthread_create");
  create(&reaper, nullptr, reap_threads, this);
}

bool kernel::stale(alarm const& a) const {
  return a.who && (a.who->sleep != a.sleep || a.who->is != thread::state::blocked);
}

void kernel::fire_due() {
  while (!alarms_.empty() && (alarms_.front().when <= now || stale(alarms_.front()))) {
    std::pop_heap(alarms_.begin(), alarms_.end());
    alarm a = std::move(alarms_.back());
    alarms_.pop_back();
    if (stale(a)) continue;
    ++events;
    if (a.who) {
      a.who->late = true;
      wake(*a.who);
    } else {
      a.what();
    }
  }
}

thread& kernel::choose() {
  fire_due();
  while (ready.empty()) {
    if (alarms_.empty()) finish("every thread waits, and nothing is to come\n" + describe_threads());
    now = std::max(now, alarms_.front().when);
    if (now > options.limit.count()) finish("the history is not over after its limit\n" + describe_threads());
    fire_due();
  }
  if (events + switches > options.most_events)
    finish("the history has too many events\n" + describe_threads());
  std::size_t const which = ready.size() == 1 ? 0 : std::size_t(schedule.below(ready.size()));
  thread& t = *ready[which];
  ready[which] = ready.back();
  ready.pop_back();
  return t;
}

void kernel::hand_over() {
  thread& before = *self;
  before.clock_reads = 0;
  thread& t = choose();
  t.is = thread::state::running;
  note("run", t.number);
  if (&t == &before) return;
  ++switches;
  leave(before);
  enter(t);
  post_baton(t.baton);
  await_baton(before.baton);
}

void kernel::retire() {
  self->is = thread::state::gone;
  leave(*self);
  thread& t = choose();
  t.is = thread::state::running;
  note("run", t.number);
  ++switches;
  enter(t);
  post_baton(t.baton);
  for (std::uint32_t nobody = 0;;) await_baton(nobody);
}

bool kernel::block(std::int64_t until, char const* for_what) {
  thread& t = *self;
  if (until <= now) {  // others go on, as they would while this one looks at its clock
    yield();
    return false;
  }
  t.is = thread::state::blocked;
  t.late = false;
  t.waits_for = for_what;
  if (trace_ >= 0)
    traced_.append(fmt::format("{} {} of {} waits for {}{}\n", now, t.number, t.of->name, for_what,
                               until == never ? "" : fmt::format(" until {}", until)));
  ++t.sleep;
  if (until != never) {
    alarms_.push_back({until, ++alarm_count_, &t, t.sleep, {}});
    std::push_heap(alarms_.begin(), alarms_.end());
  }
  hand_over();
  return !t.late;
}

bool kernel::block(wait_queue& in, std::int64_t until, char const* for_what) {
  in.those.push_back(self);
  bool const woken = block(until, for_what);
  if (!woken) std::erase(in.those, self);
  return woken;
}

void kernel::sleep_until(std::int64_t when) {
  if (when <= now) return yield();
  while (now < when) block(when, "sleep");
}

void kernel::wake(thread& t) {
  if (t.is != thread::state::blocked) return;
  t.is = thread::state::ready;
  if (t.of->stopped)
    t.of->waiting_to_go_on.push_back(&t);
  else
    ready.push_back(&t);
}

void kernel::yield() {
  thread& t = *self;
  now += 100;
  t.is = thread::state::ready;
  ready.push_back(&t);
  hand_over();
}

void kernel::preempt() {
  if (self->held == 0 && options.preemption > 0 && schedule.fraction() < options.preemption) yield();
}

void wait_queue::wake_one() {
  while (!those.empty()) {
    thread* const t = those.front();
    those.erase(those.begin());
    if (t->is != thread::state::blocked) continue;  // its process has ended, or its time has come
    os->wake(*t);
    return;
  }
}

void wait_queue::wake_all() {
  std::vector<thread*> all;
  all.swap(those);
  for (thread* t : all) os->wake(*t);
}

bool kernel::park(void const* at, std::int64_t until, char const* for_what) {
  parked_[at].those.push_back(self);
  bool const woken = block(until, for_what);
  if (auto const it = parked_.find(at); it != parked_.end()) {
    if (!woken) std::erase(it->second.those, self);
    if (it->second.empty()) parked_.erase(it);
  }
  return woken;
}

int kernel::unpark(void const* at, int most) {
  auto const it = parked_.find(at);
  if (it == parked_.end()) return 0;
  int n = 0;
  for (; n < most && !it->second.empty(); ++n) it->second.wake_one();
  return n;
}

void kernel::at(std::int64_t when, std::function<void()> what) {
  alarms_.push_back({std::max(when, now), ++alarm_count_, nullptr, 0, std::move(what)});
  std::push_heap(alarms_.begin(), alarms_.end());
}

// ---- Threads ----

thread& kernel::make_thread(process& of) {
  thread& t = threads.emplace_back();
  t.number = std::uint32_t(threads.size());
  t.of = &of;
  of.threads.push_back(&t);
  return t;
}

void* run_thread(void* given) {
  thread& t = *static_cast<thread*>(given);
  self = &t;
  t.stack_top = static_cast<char*>(__builtin_frame_address(0));
  await_baton(t.baton);
  // Also where pthread_exit unwinds. The reaper goes on when the OS thread has ended, destructors and all.
  struct last_word {
    thread& t;
    ~last_word() {
      os->dying_ = &t;
      post_baton(os->reaper_.baton);
    }
  } const end{t};
  t.result = t.entry(t.argument);
  return t.result;
}

void* reap_threads(void* given) {
  kernel& k = *static_cast<kernel*>(given);
  static auto* const join = next<decltype(pthread_join)>("pthread_join");
  for (;;) {
    await_baton(k.reaper_.baton);
    thread& t = *k.dying_;
    join(t.real, nullptr);
    t.is = thread::state::gone;
    leave(t);
    for (thread* j : t.joiners) k.wake(*j);
    t.joiners.clear();
    if (t.detached) k.by_real.erase(t.real);
    self = &k.reaper_;
    thread& following = k.choose();
    self = nullptr;
    following.is = thread::state::running;
    k.note("run", following.number);
    ++k.switches;
    enter(following);
    post_baton(following.baton);
  }
}

void kernel::start_os_thread(thread& t, pthread_attr_t const*) {
  static auto* const create = next<decltype(pthread_create)>("pthread_create");
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1u << 20);
  if (int const code = create(&t.real, &small, run_thread, &t); code != 0) raw::die("pthread_create", "");
  pthread_attr_destroy(&small);
  by_real[t.real] = &t;
  t.is = thread::state::blocked;
  wake(t);
}

void kernel::serve(process& first) { reaper_.of = &first; }

void kernel::begin() {
  thread& t = choose();
  t.is = thread::state::running;
  enter(t);
  post_baton(t.baton);
}

void kernel::drop(thread& t) {
  if (t.is == thread::state::gone) return;
  std::erase(ready, &t);
  t.is = thread::state::gone;
}

// ---- What is told ----

void kernel::note(char const* what, std::uint64_t a, std::uint64_t b) {
  hash = (hash ^ a ^ b << 32 ^ std::uint64_t(now) << 16) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  if (trace_ < 0) return;
  traced_ += std::to_string(now) + ' ' + what + ' ' + std::to_string(a) + ' ' + std::to_string(b) + '\n';
  flush_trace(1 << 16);
}

void kernel::note(char const* what, std::string_view text) {
  std::uint64_t h = 14695981039346656037u;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
  hash = (hash ^ h) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  if (trace_ < 0) return;
  traced_.append(std::to_string(now)).append(" ").append(what).append(" ").append(text).append("\n");
  flush_trace(1 << 16);
}

void kernel::called(char const* what, std::string_view on) {
  for (auto const& hears : call_listeners) hears({self->of->number, what, on});
}

void kernel::flush_trace(std::size_t from) {
  if (trace_ < 0 || traced_.size() < from) return;
  raw::call(SYS_write, trace_, long(traced_.data()), long(traced_.size()));
  traced_.clear();
}

void kernel::finish(std::string why) {
  failure = std::move(why);
  flush_trace(0);
  end_history();
}

std::string kernel::describe_threads() const {
  std::string all;
  for (thread const& t : threads)
    if (t.is != thread::state::gone)
      all += "  " + t.of->name + " thread " + std::to_string(t.number) +
             (t.is == thread::state::blocked ? std::string(" waits for ") + t.waits_for : " is ready") + "\n";
  return all;
}

}  // namespace world
