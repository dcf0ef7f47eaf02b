// SPDX-License-Identifier: Apache-2.0
#include "world/kernel/kernel.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "world/kernel/process.hpp"
#include "world/libc/raw.hpp"

namespace world {

void* carry_threads(void*);

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

// ---- OS threads ----

void post(std::uint32_t& futex) {
  __atomic_store_n(&futex, 1u, __ATOMIC_RELEASE);
  raw::call(SYS_futex, long(&futex), FUTEX_WAKE_PRIVATE, 1);
}

void await(std::uint32_t& futex) {
  while (__atomic_load_n(&futex, __ATOMIC_ACQUIRE) == 0)
    raw::call(SYS_futex, long(&futex), FUTEX_WAIT_PRIVATE, 0, 0);
  __atomic_store_n(&futex, 0u, __ATOMIC_RELAXED);
}

/// Leaves the registers that a function keeps on the stack, and this stack in `*mine`; goes on where `other`
/// was left, with its thread-local memory. A kernel that keeps programs from setting FS does it itself.
extern "C" void exchange_stacks(char** mine, char* other, void* local, bool by_kernel);
asm(R"(
.pushsection .text
.type exchange_stacks, @function
exchange_stacks:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  test %cl, %cl
  jne 1f
  wrfsbase %rdx
  jmp 2f
1:
  mov $158, %eax      # arch_prctl
  mov $0x1002, %edi   # ARCH_SET_FS
  mov %rdx, %rsi
  syscall
2:
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size exchange_stacks, . - exchange_stacks
.popsection
)");

static void go_on(thread& before, thread const& with) {
  static bool const by_kernel = !(::getauxval(AT_HWCAP2) & 2);  // FSGSBASE
  exchange_stacks(&before.stack, with.stack, with.local, by_kernel);
}

// ---- Scheduling ----

kernel::kernel(history_options o) : options(std::move(o)), hash(options.seed) {
  random_stream all{options.seed};
  for (random_stream* s : {&schedule, &network, &storage, &entropy, &driver}) s->state = all.next();
  if (!options.trace.empty()) {
    trace_ = int(raw::call(SYS_open, long(options.trace.c_str()), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    if (trace_ < 0) raw::die("cannot write ", options.trace);
  }
  pthread_t carrier;
  static auto* const create = next<decltype(pthread_create)>("pthread_create");
  create(&carrier, nullptr, carry_threads, this);
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
  if (before.ending) raw::die("what a thread leaves behind waits at its end: ", before.of->name);
  before.clock_reads = 0;
  thread& t = choose();
  t.is = thread::state::running;
  note("run", t.number);
  if (&t == &before) return;
  ++switches;
  leave(before);
  enter(t);
  go_on(before, t);
}

void kernel::retire() {
  self->is = thread::state::gone;
  leave(*self);
  thread& t = choose();
  t.is = thread::state::running;
  note("run", t.number);
  ++switches;
  enter(t);
  go_on(*self, t);
  raw::die("a thread goes on that has ended");
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

// On the stack of the thread, and the carrier.
void run_entry() {
  thread& t = *self;
  t.result = t.entry(t.argument);
  os->ended_ = &t;
  go_on(t, os->carrier_);
}

// The OS thread of a thread. Its own few frames lie above those of the thread; the end destroys what is
// thread-local.
void* lend_thread(void* given) {
  thread& t = *static_cast<thread*>(given);
  self = &t;
  constexpr std::uintptr_t own = 4096;
  auto const frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  t.stack_top = reinterpret_cast<char*>((frame - own) & ~std::uintptr_t(15));
  // As if `run_entry`, which returns to nobody, had called exchange_stacks.
  auto* const top = reinterpret_cast<void**>(t.stack_top);
  top[-1] = nullptr;
  top[-2] = reinterpret_cast<void*>(run_entry);
  t.stack = reinterpret_cast<char*>(top - 8);
  t.local = __builtin_thread_pointer();
  post(t.lent);
  await(t.ended);
  return t.result;
}

void* carry_threads(void* given) {
  kernel& k = *static_cast<kernel*>(given);
  static auto* const join = next<decltype(pthread_join)>("pthread_join");
  k.carrier_.local = __builtin_thread_pointer();
  await(k.carrier_.lent);
  for (thread* t = k.ended_;;) {
    enter(*t);
    go_on(k.carrier_, *t);
    thread& gone = *k.ended_;
    gone.ending = true;
    ++gone.held;  // who is asked for a lock does not yield
    post(gone.ended);
    join(gone.real, nullptr);
    gone.is = thread::state::gone;
    leave(gone);
    for (thread* j : gone.joiners) k.wake(*j);
    gone.joiners.clear();
    if (gone.detached) k.by_real.erase({gone.of, gone.real});
    self = &k.carrier_;
    t = &k.choose();
    self = nullptr;
    t->is = thread::state::running;
    k.note("run", t->number);
    ++k.switches;
  }
}

void kernel::start_os_thread(thread& t, pthread_attr_t const*) {
  static auto* const create = next<decltype(pthread_create)>("pthread_create");
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1u << 20);
  if (int const code = create(&t.real, &small, lend_thread, &t); code != 0) raw::die("pthread_create", "");
  pthread_attr_destroy(&small);
  await(t.lent);
  by_real[{t.of, t.real}] = &t;
  t.is = thread::state::blocked;
  wake(t);
}

void kernel::serve(process& first) { carrier_.of = &first; }

void kernel::begin() {
  ended_ = &choose();
  ended_->is = thread::state::running;
  post(carrier_.lent);
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
