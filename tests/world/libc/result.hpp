// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <string_view>

#include "world/kernel/kernel.hpp"
#include "world/kernel/object.hpp"
#include "world/kernel/process.hpp"

namespace world {

/// As libc gives what the kernel has told.
inline long result_of(long n) {
  if (n >= 0) return n;
  errno = int(-n);
  return -1;
}

/// A call that reads or writes: it may wait, and the thread may be exchanged before.
enum class direction { in, out };
template <class Try>
long transfer(int fd, direction to, bool wait, Try&& what) {
  auto const o = descriptor(fd);
  if (!o) return result_of(-EBADF);
  os->now += 300;
  os->preempt();
  std::int64_t const timeout = to == direction::in ? o->read_timeout : o->write_timeout;
  return result_of(o->until_ready(wait, timeout ? os->now + timeout : never, [&] { return what(*o); }));
}

/// Signals for a process that writes where nobody reads.
inline long broken_pipe(long n, bool quiet) {
  if (n == -1 && errno == EPIPE && !quiet) {
    send_signal(*self->of, SIGPIPE, self->of->number);
    if (self->of->end) os->retire();
    errno = EPIPE;
  }
  return n;
}

}  // namespace world
