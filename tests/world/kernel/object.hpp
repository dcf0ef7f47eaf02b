// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "world/kernel/kernel.hpp"

namespace world {

struct epoll;
struct object;

/// What an epoll object knows of one of its descriptors.
struct watch {
  epoll* in = nullptr;
  object* on = nullptr;
  int fd = -1;
  std::uint32_t events = 0;
  std::uint64_t data = 0;
  bool queued = false;
};

/// What a descriptor stands for. Results are as of system calls: negative errno for failures.
struct object : std::enable_shared_from_this<object> {
  virtual ~object();
  virtual long read(std::span<iovec const>, int flags);
  virtual long write(std::span<iovec const>, int flags);
  virtual short ready() const { return POLLIN | POLLOUT; }  ///< events of poll
  virtual bool can_be_watched() const { return true; }
  virtual void closed() {}  ///< by its last descriptor
  virtual char const* kind() const = 0;

  /// Its readiness may be another.
  void changed();

  /// Runs `what` until it gives something else than -EAGAIN, or the object is not to block.
  template <class Try>
  long until_ready(bool wait, std::int64_t deadline, Try&& what) {
    for (;;) {
      long const n = what();
      if (n != -EAGAIN || !wait || nonblocking) return n;
      if (!os->block(pollers, deadline, kind())) return -EAGAIN;
    }
  }

  bool nonblocking = false;
  std::int64_t read_timeout = 0, write_timeout = 0;  ///< SO_RCVTIMEO, SO_SNDTIMEO; 0: none
  int descriptors = 0;
  std::vector<watch*> watches;
  wait_queue pollers;
};

/// An event counter: eventfd.
struct event_counter final : object {
  explicit event_counter(std::uint64_t n, bool one_by_one) : count(n), semaphore(one_by_one) {}
  long read(std::span<iovec const>, int) override;
  long write(std::span<iovec const>, int) override;
  short ready() const override { return short((count > 0 ? POLLIN : 0) | POLLOUT); }
  char const* kind() const override { return "eventfd"; }
  std::uint64_t count;
  bool semaphore;
};

struct timer final : object {
  long read(std::span<iovec const>, int) override;
  short ready() const override;
  char const* kind() const override { return "timerfd"; }
  void set(std::int64_t when, std::int64_t every);
  std::int64_t next = never, interval = 0;
  std::uint64_t setting = 0;
};

/// One end of a pipe.
struct pipe_end final : object {
  struct content {
    std::deque<char> bytes;
    pipe_end *reader = nullptr, *writer = nullptr;
  };
  pipe_end(std::shared_ptr<content> c, bool reads) : of(std::move(c)), reading(reads) {}
  long read(std::span<iovec const>, int) override;
  long write(std::span<iovec const>, int) override;
  short ready() const override;
  void closed() override;
  char const* kind() const override { return "pipe"; }
  std::shared_ptr<content> of;
  bool reading;
};

struct epoll final : object {
  short ready() const override { return queue.empty() ? 0 : POLLIN; }
  void closed() override;
  char const* kind() const override { return "epoll"; }
  void queue_up(watch& w);
  long control(int operation, int fd, object* on, std::uint32_t events, std::uint64_t data);
  void forget(watch& w);
  struct found {
    std::uint32_t events;
    std::uint64_t data;
  };
  std::vector<found> collect(std::size_t most);
  std::map<std::pair<int, object*>, std::unique_ptr<watch>> watched;
  std::deque<watch*> queue;
};

// ---- Descriptors: those below the first are the OS process' own, but for the standard three ----

inline constexpr int first_descriptor = 64;

int add_descriptor(std::shared_ptr<object> of, bool close_on_exec = true, int at_least = first_descriptor);
/// Null: EBADF. Of the calling process, or of `by`.
std::shared_ptr<object> descriptor(int fd);
bool is_simulated(int fd);
long close_descriptor(int fd);
long duplicate_to(int from, int to);
void close_all_of(process& p);
template <class Kind>
std::shared_ptr<Kind> descriptor_of(int fd) {
  return std::dynamic_pointer_cast<Kind>(descriptor(fd));
}

long poll_objects(std::span<pollfd> fds, std::int64_t deadline);

std::size_t total_of(std::span<iovec const> parts);
/// Copies into, or out of, the parts of a call.
std::size_t scatter(std::string_view from, std::span<iovec const> into);
std::string gather(std::span<iovec const> from, std::size_t most);

}  // namespace world
