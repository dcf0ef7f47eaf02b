// SPDX-License-Identifier: Apache-2.0
#include "world/kernel/object.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "world/kernel/process.hpp"

namespace world {

object::~object() {
  for (watch* w : watches) w->on = nullptr;
}

long object::read(std::span<iovec const>, int) { return -EINVAL; }
long object::write(std::span<iovec const>, int) { return -EINVAL; }

void object::changed() {
  for (watch* w : watches) w->in->queue_up(*w);
  if (!pollers.empty()) pollers.wake_all();
}

// ---- Bytes ----

std::size_t total_of(std::span<iovec const> parts) {
  std::size_t n = 0;
  for (iovec const& p : parts) n += p.iov_len;
  return n;
}

std::size_t scatter(std::string_view from, std::span<iovec const> into) {
  std::size_t done = 0;
  for (iovec const& p : into) {
    std::size_t const n = std::min(p.iov_len, from.size() - done);
    if (n > 0) std::memcpy(p.iov_base, from.data() + done, n);
    done += n;
  }
  return done;
}

std::string gather(std::span<iovec const> from, std::size_t most) {
  std::string all;
  for (iovec const& p : from) {
    if (all.size() == most) break;
    all.append(static_cast<char const*>(p.iov_base), std::min(p.iov_len, most - all.size()));
  }
  return all;
}

// ---- Counters, timers, pipes ----

long event_counter::read(std::span<iovec const> into, int) {
  if (total_of(into) < sizeof count) return -EINVAL;
  if (count == 0) return -EAGAIN;
  std::uint64_t const value = semaphore ? 1 : count;
  count -= value;
  scatter({reinterpret_cast<char const*>(&value), sizeof value}, into);
  return sizeof value;
}

long event_counter::write(std::span<iovec const> from, int) {
  std::string const bytes = gather(from, sizeof count);
  if (bytes.size() < sizeof count) return -EINVAL;
  std::uint64_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  count += value;
  changed();
  return sizeof value;
}

void timer::set(std::int64_t when, std::int64_t every) {
  next = when;
  interval = every;
  ++setting;
  if (when == never) return;
  os->at(when, [weak = weak_from_this(), s = setting] {
    auto const t = std::static_pointer_cast<timer>(weak.lock());
    if (t && t->setting == s) t->changed();
  });
}

short timer::ready() const { return next <= os->now ? POLLIN : 0; }

long timer::read(std::span<iovec const> into, int) {
  if (next > os->now) return -EAGAIN;
  std::uint64_t const times = interval > 0 ? 1 + std::uint64_t((os->now - next) / interval) : 1;
  set(interval > 0 ? next + std::int64_t(times) * interval : never, interval);
  scatter({reinterpret_cast<char const*>(&times), sizeof times}, into);
  return sizeof times;
}

namespace {
constexpr std::size_t pipe_room = 65536;
}

long pipe_end::read(std::span<iovec const> into, int) {
  if (!reading) return -EBADF;
  if (of->bytes.empty()) return of->writer ? -EAGAIN : 0;
  std::size_t const n = std::min(total_of(into), of->bytes.size());
  std::string const part(of->bytes.begin(), of->bytes.begin() + std::ptrdiff_t(n));
  of->bytes.erase(of->bytes.begin(), of->bytes.begin() + std::ptrdiff_t(n));
  if (of->writer) of->writer->changed();
  return long(scatter(part, into));
}

long pipe_end::write(std::span<iovec const> from, int) {
  if (reading) return -EBADF;
  if (!of->reader) return -EPIPE;
  std::size_t const room = pipe_room - of->bytes.size(), all = total_of(from);
  if (room == 0 || (all <= 4096 && room < all)) return -EAGAIN;
  std::string const part = gather(from, room);
  of->bytes.insert(of->bytes.end(), part.begin(), part.end());
  of->reader->changed();
  return long(part.size());
}

short pipe_end::ready() const {
  if (reading) return short((of->bytes.empty() ? 0 : POLLIN) | (of->writer ? 0 : POLLHUP));
  return short((of->bytes.size() + 4096 <= pipe_room ? POLLOUT : 0) | (of->reader ? 0 : POLLERR));
}

void pipe_end::closed() {
  (reading ? of->reader : of->writer) = nullptr;
  if (pipe_end* const other = reading ? of->writer : of->reader) other->changed();
}

// ---- epoll ----

void epoll::queue_up(watch& w) {
  if (w.queued) return;
  w.queued = true;
  queue.push_back(&w);
  if (queue.size() == 1 || !pollers.empty()) changed();
}

void epoll::forget(watch& w) {
  if (w.queued) std::erase(queue, &w);
  if (w.on) std::erase(w.on->watches, &w);
}

void epoll::closed() {
  for (auto& [key, w] : watched) forget(*w);
  watched.clear();
}

long epoll::control(int operation, int fd, object* on, std::uint32_t events, std::uint64_t data) {
  auto const key = std::pair(fd, on);
  auto const it = watched.find(key);
  if (operation == EPOLL_CTL_ADD ? it != watched.end() : it == watched.end())
    return operation == EPOLL_CTL_ADD ? -EEXIST : -ENOENT;
  if (operation == EPOLL_CTL_DEL) {
    forget(*it->second);
    watched.erase(it);
    return 0;
  }
  if (!on->can_be_watched()) return -EPERM;
  watch& w =
      it == watched.end() ? *watched.emplace(key, std::make_unique<watch>()).first->second : *it->second;
  if (it == watched.end()) {
    w.in = this, w.on = on, w.fd = fd;
    on->watches.push_back(&w);
  }
  w.events = events;
  w.data = data;
  queue_up(w);
  return 0;
}

std::vector<epoll::found> epoll::collect(std::size_t most) {
  std::vector<found> all;
  std::vector<watch*> again;
  while (!queue.empty() && all.size() < most) {
    watch& w = *queue.front();
    queue.pop_front();
    w.queued = false;
    std::uint32_t const now = std::uint32_t(std::uint16_t(w.on->ready())) & (w.events | EPOLLERR | EPOLLHUP);
    if (now == 0) continue;
    all.push_back({now, w.data});
    if (w.events & EPOLLONESHOT) w.events = 0;
    if (!(w.events & EPOLLET)) again.push_back(&w);
  }
  for (watch* w : again)
    if (!w->queued) w->queued = true, queue.push_back(w);
  return all;
}

// ---- Descriptors ----

namespace {

void release(std::shared_ptr<object> const& o, int fd) {
  if (--o->descriptors > 0) return;
  for (watch* w : std::vector<watch*>(o->watches)) {
    epoll* const in = w->in;
    std::shared_ptr<object> const keep = in->shared_from_this();
    in->forget(*w);
    in->watched.erase(std::pair(w->fd, o.get()));
  }
  os->note("closed", std::uint64_t(fd));
  o->closed();
}

}  // namespace

int add_descriptor(std::shared_ptr<object> of, bool, int at_least) {
  auto& all = self->of->descriptors;
  std::size_t i = std::size_t(std::max(at_least - first_descriptor, 0));
  while (i < all.size() && all[i]) ++i;
  if (i >= all.size()) all.resize(i + 1);
  ++of->descriptors;
  all[i] = std::move(of);
  return int(i) + first_descriptor;
}

std::shared_ptr<object> descriptor(int fd) {
  if (fd >= 0 && fd <= 2) return self->of->standard[fd];
  std::size_t const i = std::size_t(fd - first_descriptor);
  process const* const me = self->of;
  if (fd < first_descriptor) return nullptr;
  if (i < me->descriptors.size() && me->descriptors[i]) return me->descriptors[i];
  // A fork has its parent's until it executes a program.
  return me->before_exec && i < me->parent->descriptors.size() ? me->parent->descriptors[i] : nullptr;
}

bool is_simulated(int fd) { return (fd >= 0 && fd <= 2) || fd >= first_descriptor; }

long close_descriptor(int fd) {
  std::shared_ptr<object> const o = descriptor(fd);
  if (!o) return -EBADF;
  if (fd <= 2)
    self->of->standard[fd] = nullptr;
  else if (std::size_t const i = std::size_t(fd - first_descriptor); i < self->of->descriptors.size())
    self->of->descriptors[i] = nullptr;
  else
    return 0;  // its parent's
  release(o, fd);
  return 0;
}

long duplicate_to(int from, int to) {
  std::shared_ptr<object> const o = descriptor(from);
  if (!o) return -EBADF;
  if (to < 0 || (to > 2 && to < first_descriptor)) return -EBADF;
  if (from == to) return to;
  close_descriptor(to);
  if (to > 2) return add_descriptor(o, false, to);
  ++o->descriptors;
  self->of->standard[to] = o;
  return to;
}

void close_all_of(process& p) {
  for (std::size_t i = 0; i < p.descriptors.size(); ++i)
    if (std::shared_ptr<object> const o = std::exchange(p.descriptors[i], nullptr))
      release(o, int(i) + first_descriptor);
  for (auto& o : p.standard)
    if (std::shared_ptr<object> const one = std::move(o)) o = nullptr, release(one, 0);
}

// ---- poll ----

long poll_objects(std::span<pollfd> fds, std::int64_t deadline) {
  for (;;) {
    long n = 0;
    std::vector<std::shared_ptr<object>> those;
    for (pollfd& p : fds) {
      p.revents = 0;
      if (p.fd < 0) continue;
      auto const o = descriptor(p.fd);
      p.revents = o ? short(o->ready() & (p.events | POLLERR | POLLHUP)) : short(POLLNVAL);
      n += p.revents != 0;
      if (o) those.push_back(o);
    }
    if (n > 0) return n;
    if (deadline <= os->now) {
      os->yield();
      return 0;
    }
    for (auto const& o : those) o->pollers.those.push_back(self);
    os->block(deadline, those.empty() ? "poll of nothing" : those.front()->kind());
    for (auto const& o : those) std::erase(o->pollers.those, self);
  }
}

}  // namespace world
