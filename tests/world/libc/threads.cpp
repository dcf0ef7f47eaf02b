// SPDX-License-Identifier: Apache-2.0
// Threads, locks and conditions. A lock's words are this program's own where a thread of a history takes it.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>

#include "world/kernel/process.hpp"
#include "world/libc/raw.hpp"

using namespace world;

namespace world {
std::int64_t deadline_of(clockid_t which, timespec const& at);
long simulated_call(long number, long const (&a)[6], bool& known);
}  // namespace world

namespace {

constexpr int everybody = std::numeric_limits<int>::max();

thread* thread_of(pthread_t of) {
  auto const it = os->by_real.find({self->of, of});
  return it == os->by_real.end() ? nullptr : it->second;
}

bool recursive(pthread_mutex_t const& m) { return (m.__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP; }

int lock(pthread_mutex_t& m, std::int64_t until) {
  os->preempt();
  auto& d = m.__data;
  int const me = int(self->number);
  if (d.__lock && d.__owner == me) {
    if (recursive(m)) return ++d.__count, 0;
    if ((d.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP) return EDEADLK;
  }
  while (d.__lock) {
    ++d.__nusers;
    bool const woken = os->park(&m, until, "mutex");
    --d.__nusers;
    if (!woken && d.__lock) return ETIMEDOUT;
  }
  d.__lock = 1;
  d.__owner = me;
  d.__count = 1;
  ++self->held;
  return 0;
}

int unlock(pthread_mutex_t& m) {
  auto& d = m.__data;
  if (recursive(m) && --d.__count > 0) return 0;
  d.__lock = 0;
  d.__owner = 0;
  --self->held;
  if (d.__nusers) os->unpark(&m, 1);
  return 0;
}

int wait(pthread_cond_t& c, pthread_mutex_t& m, std::int64_t until) {
  unsigned const count = m.__data.__count;
  m.__data.__count = 1;
  unlock(m);
  bool const woken = os->park(&c, until, "condition");
  lock(m, never);
  m.__data.__count = count;
  return woken ? 0 : ETIMEDOUT;
}

clockid_t clock_of(pthread_cond_t const& c) {
  return c.__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

// Readers, or -1: a writer; and who waits. They lie where glibc has nothing: what it left in its own words
// before the history is not 0.
struct rwlock_words {
  int users, waiting;
};
rwlock_words& words(pthread_rwlock_t* l) { return *reinterpret_cast<rwlock_words*>(&l->__data.__pad3); }

long futex(std::uint32_t* at, int operation, std::uint32_t value, timespec const* time) {
  int const what = operation & FUTEX_CMD_MASK;
  if (what == FUTEX_WAKE || what == FUTEX_WAKE_BITSET) return os->unpark(at, int(value));
  if (what != FUTEX_WAIT && what != FUTEX_WAIT_BITSET) return -ENOSYS;
  if (__atomic_load_n(at, __ATOMIC_SEQ_CST) != value) return -EAGAIN;
  std::int64_t until = never;
  if (time && what == FUTEX_WAIT) until = os->now + time->tv_sec * 1'000'000'000 + time->tv_nsec;
  if (time && what == FUTEX_WAIT_BITSET)
    until = deadline_of(operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, *time);
  return os->park(at, until, "futex") ? 0 : -ETIMEDOUT;
}

}  // namespace

extern "C" {

long syscall(long number, ...) noexcept {
  va_list given;
  va_start(given, number);
  long a[6];
  for (long& one : a) one = va_arg(given, long);
  va_end(given);
  long result = 0;
  bool known = self && number == SYS_futex;
  if (known)
    result = futex(reinterpret_cast<std::uint32_t*>(a[0]), int(a[1]), std::uint32_t(a[2]),
                   reinterpret_cast<timespec const*>(a[3]));
  else if (self)
    result = simulated_call(number, a, known);
  if (!known) result = raw::call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (result >= 0 || result < -4095) return result;
  errno = int(-result);
  return -1;
}

// ---- Threads ----

int pthread_create(pthread_t* into, pthread_attr_t const* how, void* (*entry)(void*),
                   void* argument) noexcept {
  static auto* const real =
      next<int(pthread_t*, pthread_attr_t const*, void* (*)(void*), void*)>("pthread_create");
  if (!self) return real(into, how, entry, argument);
  thread& t = os->make_thread(*self->of);
  t.entry = entry;
  t.argument = argument;
  t.signal_mask = self->signal_mask;
  int state = PTHREAD_CREATE_JOINABLE;
  if (how) pthread_attr_getdetachstate(how, &state);
  t.detached = state == PTHREAD_CREATE_DETACHED;
  os->start_os_thread(t, how);
  *into = t.real;
  os->preempt();
  return 0;
}

int pthread_join(pthread_t of, void** result) {
  static auto* const real = next<int(pthread_t, void**)>("pthread_join");
  if (!self) return real(of, result);
  thread* const t = thread_of(of);
  if (!t) return ESRCH;
  while (t->is != thread::state::gone) {
    t->joiners.push_back(self);
    os->block(never, "a thread's end");
  }
  if (result) *result = t->result;
  if (auto const it = os->by_real.find({self->of, of}); it != os->by_real.end() && it->second == t)
    os->by_real.erase(it);
  return 0;
}

int pthread_detach(pthread_t of) noexcept {
  static auto* const real = next<int(pthread_t)>("pthread_detach");
  if (!self) return real(of);
  if (thread* const t = thread_of(of)) t->detached = true;
  return 0;
}

int sched_yield() noexcept {
  static auto* const real = next<int()>("sched_yield");
  if (!self) return real();
  os->yield();
  return 0;
}

int sched_getaffinity(pid_t of, size_t size, cpu_set_t* into) noexcept {
  static auto* const real = next<int(pid_t, size_t, cpu_set_t*)>("sched_getaffinity");
  if (!self) return real(of, size, into);
  CPU_ZERO_S(size, into);
  CPU_SET_S(0, size, into);
  return 0;
}

int sched_setaffinity(pid_t of, size_t size, cpu_set_t const* to) noexcept {
  static auto* const real = next<int(pid_t, size_t, cpu_set_t const*)>("sched_setaffinity");
  return self ? 0 : real(of, size, to);
}

int pthread_setaffinity_np(pthread_t of, size_t size, cpu_set_t const* to) noexcept {
  static auto* const real = next<int(pthread_t, size_t, cpu_set_t const*)>("pthread_setaffinity_np");
  return self ? 0 : real(of, size, to);
}

int get_nprocs() noexcept {
  static auto* const real = next<int()>("get_nprocs");
  return self ? 1 : real();
}

// ---- Locks ----

int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  return self ? lock(*m, never) : real(m);
}

int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  if (!self) return real(m);
  if (m->__data.__lock && !(recursive(*m) && m->__data.__owner == int(self->number))) return EBUSY;
  return lock(*m, never);
}

int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t which, timespec const* until) noexcept {
  static auto* const real =
      next<int(pthread_mutex_t*, clockid_t, timespec const*)>("pthread_mutex_clocklock");
  return self ? lock(*m, deadline_of(which, *until)) : real(m, which, until);
}

int pthread_mutex_timedlock(pthread_mutex_t* m, timespec const* until) noexcept {
  static auto* const real = next<int(pthread_mutex_t*, timespec const*)>("pthread_mutex_timedlock");
  return self ? lock(*m, deadline_of(CLOCK_REALTIME, *until)) : real(m, until);
}

int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  return self ? unlock(*m) : real(m);
}

int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  static auto* const real = next<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  return self ? wait(*c, *m, never) : real(c, m);
}

int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, timespec const* until) {
  static auto* const real =
      next<int(pthread_cond_t*, pthread_mutex_t*, timespec const*)>("pthread_cond_timedwait");
  return self ? wait(*c, *m, deadline_of(clock_of(*c), *until)) : real(c, m, until);
}

int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t which, timespec const* until) {
  static auto* const real =
      next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, timespec const*)>("pthread_cond_clockwait");
  return self ? wait(*c, *m, deadline_of(which, *until)) : real(c, m, which, until);
}

int pthread_cond_signal(pthread_cond_t* c) noexcept {
  static auto* const real = next<int(pthread_cond_t*)>("pthread_cond_signal");
  return self ? os->unpark(c, 1), 0 : real(c);
}

int pthread_cond_broadcast(pthread_cond_t* c) noexcept {
  static auto* const real = next<int(pthread_cond_t*)>("pthread_cond_broadcast");
  return self ? os->unpark(c, everybody), 0 : real(c);
}

int pthread_cond_destroy(pthread_cond_t* c) noexcept {
  static auto* const real = next<int(pthread_cond_t*)>("pthread_cond_destroy");
  return self ? 0 : real(c);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  if (!self) return real(l);
  os->preempt();
  for (rwlock_words& w = words(l); w.users < 0;) ++w.waiting, os->park(l, never, "rwlock"), --w.waiting;
  ++words(l).users;
  ++self->held;
  return 0;
}

int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  if (!self) return real(l);
  os->preempt();
  for (rwlock_words& w = words(l); w.users != 0;) ++w.waiting, os->park(l, never, "rwlock"), --w.waiting;
  words(l).users = -1;
  ++self->held;
  return 0;
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_tryrdlock");
  if (!self) return real(l);
  if (words(l).users < 0) return EBUSY;
  return pthread_rwlock_rdlock(l);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_trywrlock");
  if (!self) return real(l);
  if (words(l).users != 0) return EBUSY;
  return pthread_rwlock_wrlock(l);
}

int pthread_rwlock_unlock(pthread_rwlock_t* l) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_unlock");
  if (!self) return real(l);
  rwlock_words& w = words(l);
  w.users = w.users < 0 ? 0 : w.users - 1;
  --self->held;
  if (w.users == 0 && w.waiting) os->unpark(l, everybody);
  return 0;
}

// 0: nobody has begun; 1: somebody does it; 2: done, as glibc has it.
int pthread_once(pthread_once_t* o, void (*what)()) {
  static auto* const real = next<int(pthread_once_t*, void (*)())>("pthread_once");
  if (!self) return real(o, what);
  while (*o == 1) os->park(o, never, "once");
  if (*o == 2) return 0;
  *o = 1;
  ++self->held;
  struct outcome {
    pthread_once_t& o;
    int is = 0;
    ~outcome() {
      o = is;
      --self->held;
      os->unpark(&o, everybody);
    }
  } done{*o};
  what();
  done.is = 2;
  return 0;
}

int sem_wait(sem_t* s) {
  static auto* const real = next<int(sem_t*)>("sem_wait");
  if (!self) return real(s);
  auto& count = *reinterpret_cast<unsigned*>(s);
  while (count == 0) os->park(s, never, "semaphore");
  --count;
  return 0;
}

int sem_post(sem_t* s) noexcept {
  static auto* const real = next<int(sem_t*)>("sem_post");
  if (!self) return real(s);
  ++*reinterpret_cast<unsigned*>(s);
  os->unpark(s, 1);
  return 0;
}

}  // extern "C"

// ---- What is made once: nobody is exchanged in the middle of it, as all processes of a history share it
// ----

extern "C" int acquire_guard(unsigned char*) asm("__cxa_guard_acquire");
extern "C" void release_guard(unsigned char*) asm("__cxa_guard_release");
extern "C" void abort_guard(unsigned char*) asm("__cxa_guard_abort");

int acquire_guard(unsigned char* guard) {
  if (__atomic_load_n(guard, __ATOMIC_ACQUIRE)) return 0;
  while (guard[1] && self) os->park(guard, never, "a static variable");
  if (guard[0]) return 0;
  guard[1] = 1;
  if (self) ++self->held;
  return 1;
}

static void end_guard(unsigned char* guard, bool made) {
  guard[1] = 0;
  __atomic_store_n(guard, made, __ATOMIC_RELEASE);
  if (!self) return;
  --self->held;
  os->unpark(guard, everybody);
}

void release_guard(unsigned char* guard) { end_guard(guard, true); }
void abort_guard(unsigned char* guard) { end_guard(guard, false); }
