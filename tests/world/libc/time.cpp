// SPDX-License-Identifier: Apache-2.0
// Clocks, sleep and random numbers.
#include <errno.h>
#include <openssl/rand.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "world/kernel/process.hpp"

using namespace world;

namespace {

constexpr std::int64_t second = 1'000'000'000;

std::int64_t nanoseconds(timespec const& t) { return t.tv_sec * second + t.tv_nsec; }
timespec to_timespec(std::int64_t t) { return {time_t(t / second), long(t % second)}; }

/// Looking at a clock takes a moment; who does nothing else lets others go on.
std::int64_t look() {
  os->now += 40;
  if (++self->clock_reads > 200) os->yield();
  return os->now;
}

// A machine has been up for some time when a history begins.
constexpr std::int64_t uptime = 1000 * second;

std::int64_t read_clock(clockid_t which) {
  std::int64_t const t = look();
  switch (which) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return epoch_begin + t + self->of->at->clock_offset;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return t / 100;
    default:
      return uptime + t;
  }
}

void fill_random(void* into, std::size_t size) {
  auto* to = static_cast<unsigned char*>(into);
  while (size > 0) {
    std::uint64_t const r = os->entropy.next();
    std::size_t const n = std::min(size, sizeof r);
    std::memcpy(to, &r, n);
    to += n, size -= n;
  }
}

int openssl_bytes(unsigned char* into, int size) {
  if (!self) return getentropy(into, std::size_t(std::min(size, 256))) == 0;
  fill_random(into, std::size_t(size));
  return 1;
}

}  // namespace

namespace world {

std::int64_t deadline_of(clockid_t which, timespec const& at) {
  std::int64_t const t = nanoseconds(at);
  return which == CLOCK_REALTIME ? t - epoch_begin - self->of->at->clock_offset : t - uptime;
}

void own_random_numbers() {
  static RAND_METHOD const method{.seed = [](void const*, int) { return 1; },
                                  .bytes = openssl_bytes,
                                  .cleanup = nullptr,
                                  .add = [](void const*, int, double) { return 1; },
                                  .pseudorand = openssl_bytes,
                                  .status = [] { return 1; }};
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  RAND_set_rand_method(&method);
}

}  // namespace world

extern "C" {

int clock_gettime(clockid_t which, timespec* into) noexcept {
  static auto* const real = next<int(clockid_t, timespec*)>("clock_gettime");
  if (!self) return real(which, into);
  *into = to_timespec(read_clock(which));
  return 0;
}

int gettimeofday(timeval* into, void* zone) noexcept {
  static auto* const real = next<int(timeval*, void*)>("gettimeofday");
  if (!self) return real(into, zone);
  std::int64_t const t = read_clock(CLOCK_REALTIME);
  *into = {time_t(t / second), suseconds_t(t % second / 1000)};
  return 0;
}

time_t time(time_t* into) noexcept {
  static auto* const real = next<time_t(time_t*)>("time");
  if (!self) return real(into);
  time_t const t = time_t(read_clock(CLOCK_REALTIME) / second);
  if (into) *into = t;
  return t;
}

clock_t clock() noexcept {
  static auto* const real = next<clock_t()>("clock");
  return self ? read_clock(CLOCK_PROCESS_CPUTIME_ID) / 1000 : real();
}

int nanosleep(timespec const* how_long, timespec* left) {
  static auto* const real = next<int(timespec const*, timespec*)>("nanosleep");
  if (!self) return real(how_long, left);
  os->sleep_until(os->now + nanoseconds(*how_long));
  return 0;
}

int clock_nanosleep(clockid_t which, int flags, timespec const* when, timespec* left) {
  static auto* const real = next<int(clockid_t, int, timespec const*, timespec*)>("clock_nanosleep");
  if (!self) return real(which, flags, when, left);
  os->sleep_until(flags & TIMER_ABSTIME ? deadline_of(which, *when) : os->now + nanoseconds(*when));
  return 0;
}

int usleep(useconds_t us) {
  timespec const t = to_timespec(std::int64_t(us) * 1000);
  return nanosleep(&t, nullptr);
}

unsigned sleep(unsigned s) {
  timespec const t = to_timespec(std::int64_t(s) * second);
  nanosleep(&t, nullptr);
  return 0;
}

ssize_t getrandom(void* into, size_t size, unsigned flags) {
  static auto* const real = next<ssize_t(void*, size_t, unsigned)>("getrandom");
  if (!self) return real(into, size, flags);
  fill_random(into, size);
  return ssize_t(size);
}

int getentropy(void* into, size_t size) {
  static auto* const real = next<int(void*, size_t)>("getentropy");
  if (!self) return real(into, size);
  fill_random(into, size);
  return 0;
}

std::uint32_t arc4random() noexcept {
  static auto* const real = next<std::uint32_t()>("arc4random");
  return self ? std::uint32_t(os->entropy.next()) : real();
}

}  // extern "C"

// An instruction of the processor, where libstdc++ has its way.
void std::random_device::_M_init(std::string const&) {}
void std::random_device::_M_fini() {}
unsigned std::random_device::_M_getval() {
  unsigned value = 0;
  if (self)
    value = unsigned(os->entropy.next());
  else
    getentropy(&value, sizeof value);
  return value;
}
