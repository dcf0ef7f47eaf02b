// SPDX-License-Identifier: Apache-2.0
// Reading, writing and waiting.
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "world/kernel/disk.hpp"
#include "world/kernel/network.hpp"
#include "world/libc/result.hpp"

using namespace world;

namespace world {
std::int64_t deadline_of(clockid_t which, timespec const& at);
long control_memory(object& of, int command, long argument);
}  // namespace world

namespace {

bool ours(int fd) { return self && is_simulated(fd); }

std::int64_t after_ms(int timeout) {
  return timeout < 0 ? never : os->now + std::int64_t(timeout) * 1'000'000;
}

template <class Object, class... A>
int make(bool nonblocking, A&&... a) {
  auto o = std::make_shared<Object>(std::forward<A>(a)...);
  o->nonblocking = nonblocking;
  return add_descriptor(std::move(o));
}

int control(int fd, int command, long argument) {
  auto const o = descriptor(fd);
  if (!o) return int(result_of(-EBADF));
  auto* const file = dynamic_cast<open_file*>(o.get());
  switch (command) {
    case F_GETFD:
      return FD_CLOEXEC;
    case F_SETFD:
      return 0;
    case F_GETFL:
      return (o->nonblocking ? O_NONBLOCK : 0) | (file ? file->flags & (O_ACCMODE | O_APPEND) : O_RDWR);
    case F_SETFL:
      o->nonblocking = argument & O_NONBLOCK;
      if (file) file->flags = (file->flags & ~O_APPEND) | int(argument & O_APPEND);
      return 0;
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return add_descriptor(o);
    case F_OFD_SETLK:
    case F_SETLK:
      return file ? int(result_of(file->lock_range(*reinterpret_cast<struct flock*>(argument))))
                  : int(result_of(-EBADF));
    default:
      return int(result_of(control_memory(*o, command, argument)));
  }
}

}  // namespace

extern "C" {

int close(int fd) {
  static auto* const real = next<int(int)>("close");
  if (!ours(fd)) return real(fd);
  return int(result_of(close_descriptor(fd)));
}

int dup(int fd) noexcept {
  static auto* const real = next<int(int)>("dup");
  if (!ours(fd)) return real(fd);
  auto const o = descriptor(fd);
  return o ? add_descriptor(o) : int(result_of(-EBADF));
}

int dup2(int from, int to) noexcept {
  static auto* const real = next<int(int, int)>("dup2");
  if (!ours(from)) return real(from, to);
  return int(result_of(duplicate_to(from, to)));
}

int dup3(int from, int to, int) noexcept { return dup2(from, to); }

ssize_t readv(int fd, iovec const* parts, int count) {
  static auto* const real = next<ssize_t(int, iovec const*, int)>("readv");
  if (!ours(fd)) return real(fd, parts, count);
  return transfer(fd, direction::in, true, [&](object& o) { return o.read({parts, std::size_t(count)}, 0); });
}

ssize_t writev(int fd, iovec const* parts, int count) {
  static auto* const real = next<ssize_t(int, iovec const*, int)>("writev");
  if (!ours(fd)) return real(fd, parts, count);
  long const n =
      transfer(fd, direction::out, true, [&](object& o) { return o.write({parts, std::size_t(count)}, 0); });
  if (n > 0 && (fd == 1 || fd == 2) && descriptor_of<open_file>(fd))
    hear(*self->of, fd, gather({parts, std::size_t(count)}, std::size_t(n)));
  return broken_pipe(n, false);
}

ssize_t read(int fd, void* into, size_t size) {
  static auto* const real = next<ssize_t(int, void*, size_t)>("read");
  if (!ours(fd)) return real(fd, into, size);
  iovec const one{into, size};
  return readv(fd, &one, 1);
}

ssize_t write(int fd, void const* from, size_t size) {
  static auto* const real = next<ssize_t(int, void const*, size_t)>("write");
  if (!ours(fd)) return real(fd, from, size);
  iovec const one{const_cast<void*>(from), size};
  return writev(fd, &one, 1);
}

int fcntl(int fd, int command, ...) {
  static auto* const real = next<int(int, int, long)>("fcntl");
  va_list given;
  va_start(given, command);
  long const argument = va_arg(given, long);
  va_end(given);
  return ours(fd) ? control(fd, command, argument) : real(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  va_list given;
  va_start(given, command);
  long const argument = va_arg(given, long);
  va_end(given);
  return fcntl(fd, command, argument);
}

int ioctl(int fd, unsigned long request, ...) noexcept {
  static auto* const real = next<int(int, unsigned long, void*)>("ioctl");
  va_list given;
  va_start(given, request);
  void* const argument = va_arg(given, void*);
  va_end(given);
  if (!ours(fd)) return real(fd, request, argument);
  auto const o = descriptor(fd);
  if (!o) return int(result_of(-EBADF));
  if (request == FIONBIO) {
    o->nonblocking = *static_cast<int*>(argument) != 0;
    return 0;
  }
  if (request == FIONREAD) {
    int& n = *static_cast<int*>(argument);
    n = 0;
    if (auto* const s = dynamic_cast<world::socket*>(o.get())) n = int(s->incoming.size() - s->taken);
    if (auto* const f = dynamic_cast<open_file*>(o.get()); f && f->node)
      n = int(std::max<std::int64_t>(0, std::int64_t(f->node->data.size()) - f->offset));
    return 0;
  }
  return int(result_of(-ENOTTY));
}

int isatty(int fd) noexcept {
  static auto* const real = next<int(int)>("isatty");
  if (!ours(fd)) return real(fd);
  errno = ENOTTY;
  return 0;
}

int pipe2(int ends[2], int flags) noexcept {
  static auto* const real = next<int(int*, int)>("pipe2");
  if (!self) return real(ends, flags);
  auto const content = std::make_shared<pipe_end::content>();
  auto const reader = std::make_shared<pipe_end>(content, true),
             writer = std::make_shared<pipe_end>(content, false);
  content->reader = reader.get();
  content->writer = writer.get();
  reader->nonblocking = writer->nonblocking = flags & O_NONBLOCK;
  ends[0] = add_descriptor(reader);
  ends[1] = add_descriptor(writer);
  return 0;
}

int pipe(int ends[2]) noexcept { return pipe2(ends, 0); }

int eventfd(unsigned count, int flags) noexcept {
  static auto* const real = next<int(unsigned, int)>("eventfd");
  if (!self) return real(count, flags);
  return make<event_counter>(flags & EFD_NONBLOCK, count, (flags & EFD_SEMAPHORE) != 0);
}

int eventfd_read(int fd, eventfd_t* into) { return read(fd, into, sizeof *into) == sizeof *into ? 0 : -1; }
int eventfd_write(int fd, eventfd_t value) {
  return write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

int timerfd_create(clockid_t which, int flags) noexcept {
  static auto* const real = next<int(clockid_t, int)>("timerfd_create");
  if (!self) return real(which, flags);
  return make<timer>(flags & TFD_NONBLOCK);
}

int timerfd_settime(int fd, int flags, itimerspec const* to, itimerspec* before) noexcept {
  static auto* const real = next<int(int, int, itimerspec const*, itimerspec*)>("timerfd_settime");
  if (!ours(fd)) return real(fd, flags, to, before);
  auto const t = descriptor_of<timer>(fd);
  if (!t) return int(result_of(-EBADF));
  if (before) *before = {};
  std::int64_t const value = to->it_value.tv_sec * 1'000'000'000 + to->it_value.tv_nsec;
  std::int64_t const every = to->it_interval.tv_sec * 1'000'000'000 + to->it_interval.tv_nsec;
  std::int64_t when = never;
  if (value != 0)
    when = flags & TFD_TIMER_ABSTIME ? deadline_of(CLOCK_MONOTONIC, to->it_value) : os->now + value;
  t->set(when, every);
  return 0;
}

int signalfd(int fd, sigset_t const* set, int flags) noexcept {
  static auto* const real = next<int(int, sigset_t const*, int)>("signalfd");
  if (!self) return real(fd, set, flags);
  auto const o = std::make_shared<signal_handle>(*self->of, bits_of(*set));
  o->nonblocking = flags & SFD_NONBLOCK;
  self->of->signal_handles.push_back(o);
  return add_descriptor(o);
}

// ---- Waiting ----

int epoll_create1(int flags) noexcept {
  static auto* const real = next<int(int)>("epoll_create1");
  return self ? make<epoll>(false) : real(flags);
}

int epoll_create(int) noexcept { return epoll_create1(0); }

int epoll_ctl(int on, int operation, int fd, epoll_event* event) noexcept {
  static auto* const real = next<int(int, int, int, epoll_event*)>("epoll_ctl");
  if (!ours(on)) return real(on, operation, fd, event);
  auto const e = descriptor_of<epoll>(on);
  auto const o = descriptor(fd);
  if (!e || !o) return int(result_of(-EBADF));
  return int(
      result_of(e->control(operation, fd, o.get(), event ? event->events : 0, event ? event->data.u64 : 0)));
}

int epoll_wait(int on, epoll_event* into, int most, int timeout) {
  static auto* const real = next<int(int, epoll_event*, int, int)>("epoll_wait");
  if (!ours(on)) return real(on, into, most, timeout);
  auto const e = descriptor_of<epoll>(on);
  if (!e) return int(result_of(-EBADF));
  std::int64_t const deadline = after_ms(timeout);
  os->now += 300;
  os->preempt();
  for (;;) {
    auto const found = e->collect(std::size_t(most));
    for (std::size_t i = 0; i < found.size(); ++i) {
      into[i].events = found[i].events;
      into[i].data.u64 = found[i].data;
    }
    if (!found.empty() || timeout == 0) return int(found.size());
    if (!os->block(e->pollers, deadline, "epoll")) return 0;
  }
}

int epoll_pwait(int on, epoll_event* into, int most, int timeout, sigset_t const*) {
  return epoll_wait(on, into, most, timeout);
}

int poll(pollfd* fds, nfds_t count, int timeout) {
  static auto* const real = next<int(pollfd*, nfds_t, int)>("poll");
  if (!self) return real(fds, count, timeout);
  std::int64_t const more = timeout > 0 && timeout <= 10 ? self->of->slack : 0;
  return int(result_of(poll_objects({fds, std::size_t(count)}, after_ms(timeout) + more)));
}

int ppoll(pollfd* fds, nfds_t count, timespec const* timeout, sigset_t const* mask) {
  static auto* const real = next<int(pollfd*, nfds_t, timespec const*, sigset_t const*)>("ppoll");
  if (!self) return real(fds, count, timeout, mask);
  std::int64_t const until = timeout ? os->now + timeout->tv_sec * 1'000'000'000 + timeout->tv_nsec : never;
  return int(result_of(poll_objects({fds, std::size_t(count)}, until)));
}

int select(int n, fd_set* r, fd_set* w, fd_set* x, timeval* timeout) {
  static auto* const real = next<int(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  if (!self) return real(n, r, w, x, timeout);
  std::vector<pollfd> fds;
  for (int fd = 0; fd < n; ++fd) {
    int events = 0;
    if (r && FD_ISSET(fd, r)) events |= POLLIN;
    if (w && FD_ISSET(fd, w)) events |= POLLOUT;
    if (x && FD_ISSET(fd, x)) events |= POLLPRI;
    if (events) fds.push_back({fd, short(events), 0});
  }
  std::int64_t const until =
      timeout ? os->now + timeout->tv_sec * 1'000'000'000 + timeout->tv_usec * 1000 : never;
  long const found = poll_objects(fds, until);
  for (fd_set* s : {r, w, x})
    if (s) FD_ZERO(s);
  if (found < 0) return int(result_of(found));
  int count = 0;
  for (pollfd const& p : fds) {
    if (p.revents & POLLNVAL) return int(result_of(-EBADF));
    if (r && (p.events & POLLIN) && (p.revents & (POLLIN | POLLHUP | POLLERR))) FD_SET(p.fd, r), ++count;
    if (w && (p.events & POLLOUT) && (p.revents & (POLLOUT | POLLERR))) FD_SET(p.fd, w), ++count;
  }
  return count;
}

}  // extern "C"
