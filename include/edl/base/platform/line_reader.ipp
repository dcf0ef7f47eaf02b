// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "edl/base/platform/line_reader.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::platform {

namespace detail {
inline constexpr std::size_t longest_line = 64u << 10, longest_read = 16u << 10, pipe_capacity = 64u << 10;
}

EDL_INLINE line_reader::line_reader(std::function<void(std::string_view)> on_line)
    : on_line_(std::move(on_line)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0)
    throw error(fmt::format("cannot read the output of processes: eventfd: {}", std::strerror(errno)));
  thread_ = std::thread([this] { read_all(); });
}

EDL_INLINE line_reader::~line_reader() {
  drain();
  {
    std::lock_guard const lock(mutex_);
    closing_ = true;
  }
  ::eventfd_write(wake_, 1);
  thread_.join();
  for (auto& [fd, from] : pipes_) {
    if (!from.line.empty()) tell(from);
    ::close(fd);
  }
  ::close(wake_);
}

EDL_INLINE int line_reader::open(std::uint64_t number) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  {
    std::lock_guard const lock(mutex_);
    auto const [at, fresh] = pipes_.try_emplace(ends[0]);
    invariant(fresh, "a new pipe has a descriptor of its own");
    at->second.number = number;
  }
  ::eventfd_write(wake_, 1);
  return ends[1];
}

EDL_INLINE void line_reader::drain(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  std::uint64_t const mine = ++requested_;
  ::eventfd_write(wake_, 1);
  drained_.wait_for(lock, timeout, [&] { return answered_ >= mine; });
}

EDL_INLINE std::string line_reader::last(std::uint64_t number) {
  std::lock_guard const lock(mutex_);
  auto const found = last_.extract(number);
  return found.empty() ? "" : std::move(found.mapped());
}

EDL_INLINE void line_reader::tell(source& from) {
  if (from.number != 0 && from.line.find_first_not_of(" \t\r") != from.line.npos) {
    std::lock_guard const lock(mutex_);
    last_[from.number] = from.line;
  }
  on_line_(from.line);
  from.line.clear();
}

/// False: no process can write any more.
EDL_INLINE bool line_reader::take(int fd, source& from) {
  std::string& line = from.line;
  std::array<char, detail::longest_read> bytes;
  auto const n = ::read(fd, bytes.data(), bytes.size());
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  std::string_view rest(bytes.data(), std::size_t(n));
  for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    line.append(rest.substr(0, end));
    tell(from);
    rest.remove_prefix(end + 1);
  }
  line.append(rest);
  if (!line.empty() && (n == 0 || line.size() > detail::longest_line)) tell(from);
  return n > 0;
}

EDL_INLINE void line_reader::read_all() {
  // Writers may never pause: the data that was there before a call is read in this many rounds.
  static constexpr std::size_t enough = detail::pipe_capacity / detail::longest_read + 1;
  std::uint64_t requested = 0;
  std::size_t rounds = 0;
  for (;;) {
    std::vector<pollfd> all{{wake_, POLLIN, 0}};
    {
      std::lock_guard const lock(mutex_);
      if (closing_) return;
      for (auto const& [fd, from] : pipes_) all.push_back({fd, POLLIN, 0});
      // A caller that arrives meanwhile waits for rounds of its own.
      if (requested == answered_) requested = requested_, rounds = 0;
    }
    // A waiting caller is answered when a round finds nothing more to read.
    bool const awaited = requested > answered_;
    if (::poll(all.data(), all.size(), awaited ? 0 : -1) < 0) continue;
    eventfd_t count;
    if (all[0].revents) ::eventfd_read(wake_, &count);
    bool any = false;
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (!all[i].revents) continue;
      any = true;
      // Only this thread touches the lines, and only this code removes any.
      std::unique_lock lock(mutex_);
      source& from = pipes_.at(all[i].fd);
      lock.unlock();
      if (take(all[i].fd, from)) continue;
      lock.lock();
      // Erase first: once the pipe is closed, a new one may get the same descriptor.
      pipes_.erase(all[i].fd);
      ::close(all[i].fd);
    }
    if (!awaited || (any && ++rounds < enough)) continue;
    std::lock_guard const lock(mutex_);
    invariant(answered_ <= requested && requested <= requested_,
              "requests are answered in their order, once each");
    answered_ = requested;
    drained_.notify_all();
  }
}

}  // namespace edl::platform
