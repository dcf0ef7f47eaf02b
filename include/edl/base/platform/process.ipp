// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "edl/base/platform/process.hpp"
#include "edl/core/control_group.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::platform {
namespace detail {

// Runs between fork and exec, so it may only call functions that are safe after fork in a process with
// threads.
[[noreturn]] inline void become(char const* program, char* const* arguments, char* const* environment,
                                pid_t parent, int output, bool also_output) {
  if (!die_with_parent(parent)) ::_exit(127);
  // Signals that arrive before this stay pending if the parent blocks them; ignored ones are dropped.
  for (int s : {SIGTERM, SIGPIPE, SIGCHLD}) ::signal(s, SIG_DFL);
  for (int s : {SIGINT, SIGHUP}) ::signal(s, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (output >= 0) ::dup2(output, 2);
  if (output >= 0 && also_output) ::dup2(output, 1);
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  ::execve(program, arguments, environment);
  ::_exit(127);
}

// A terminal may be paused, and the end of a process must not wait for it.
inline constexpr std::chrono::seconds last_words_within{2};

inline std::vector<char*> pointers(std::vector<std::string> const& strings) {
  std::vector<char*> out;
  for (std::string const& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace detail

EDL_INLINE bool die_with_parent(pid_t parent) noexcept {
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
}

EDL_INLINE processes::processes(std::string program, std::vector<std::string> command,
                                std::function<void(ending const&)> on_end, line_reader* said,
                                std::function<std::uint64_t()> kills_for_memory,
                                std::chrono::milliseconds look)
    : program_(std::move(program)),
      command_(std::move(command)),
      on_end_(std::move(on_end)),
      said_(said),
      kills_(kills_for_memory ? std::move(kills_for_memory) : [] { return memory_kills(); }),
      look_(look),
      explained_(kills_()),
      seen_(explained_),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw error(fmt::format("cannot watch processes: eventfd: {}", std::strerror(errno)));
  // The kernel ties a child to the thread that forked it (PR_SET_PDEATHSIG), so one thread that lives as long
  // as this object does all forks.
  supervisor_ = std::thread([this] { supervise(); });
}

EDL_INLINE processes::~processes() {
  {
    std::lock_guard const lock(mutex_);
    closing_ = true;
    orders_.clear();
    for (auto& [who, c] : children_) {
      c.stop_requested = true;
      if (c.pid) ::kill(c.pid, SIGKILL);
    }
  }
  ::eventfd_write(wake_, 1);
  supervisor_.join();
  invariant(children_.empty(), "nothing runs when its supervisor has ended");
  ::close(wake_);
}

EDL_INLINE void processes::start(process_id who, environment const& env, std::uint64_t number) {
  start_order order{who, {}, number};
  for (char** e = ::environ; *e; ++e) {
    std::string_view const entry(*e), key = entry.substr(0, entry.find('='));
    bool replaced = false;
    for (auto const& [name, value] : env) replaced |= key == name;
    if (!replaced) order.environment.emplace_back(entry);
  }
  for (auto const& [name, value] : env) order.environment.push_back(name + "=" + value);
  {
    std::lock_guard const lock(mutex_);
    if (closing_) return;
    // A process that still waits was never started, so it has no end to report.
    std::erase_if(orders_, [&](start_order const& o) { return o.who == who; });
    orders_.push_back(std::move(order));
  }
  ::eventfd_write(wake_, 1);
}

EDL_INLINE void processes::stop(process_id who, std::chrono::milliseconds grace) {
  {
    std::lock_guard const lock(mutex_);
    auto const waits = std::ranges::find(orders_, who, &start_order::who);
    auto const it = children_.find(who);
    if (waits != orders_.end()) {
      // If a process of that name still runs, the observer learns of its end instead.
      if (it == children_.end()) dropped_.push_back(std::move(*waits));
      orders_.erase(waits);
    }
    if (it != children_.end()) {
      it->second.stop_requested = true;
      it->second.kill_at = clock::now() + grace;
      if (it->second.pid) ::kill(it->second.pid, SIGTERM);
    }
  }
  ::eventfd_write(wake_, 1);
}

EDL_INLINE void processes::let_leave(pid_t pid, bool stop_requested) {
  std::lock_guard const lock(mutex_);
  for (auto const& [who, c] : children_)
    if (pid > 0 && c.pid == pid && (c.stop_requested || !stop_requested)) ::kill(pid, SIGTERM);
}

EDL_INLINE void processes::stop_all(std::chrono::milliseconds grace, bool with_master) {
  for (role r : {role::worker, role::server, role::master}) {
    if (r == role::master && !with_master) continue;
    std::vector<process_id> those;
    {
      std::lock_guard const lock(mutex_);
      std::erase_if(orders_, [&](start_order const& o) { return o.who.role == r; });
      for (auto const& [who, c] : children_)
        if (who.role == r) those.push_back(who);
    }
    for (process_id const& who : those) stop(who, grace);
    for (process_id const& who : those)
      while (runs(who)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

EDL_INLINE bool processes::runs(process_id who) const {
  std::lock_guard const lock(mutex_);
  return children_.contains(who);
}

EDL_INLINE pid_t processes::pid(process_id who) const {
  std::lock_guard const lock(mutex_);
  auto const it = children_.find(who);
  return it == children_.end() ? 0 : it->second.pid;
}

EDL_INLINE std::vector<process_id> processes::all() const {
  std::lock_guard const lock(mutex_);
  std::vector<process_id> found;
  for (start_order const& o : orders_)
    if (!children_.contains(o.who)) found.push_back(o.who);
  for (auto const& [who, c] : children_) found.push_back(who);
  return found;
}

EDL_INLINE std::size_t processes::running(role of) const {
  std::lock_guard const lock(mutex_);
  auto const mine = [of](auto const& one) { return one.who.role == of; };
  std::size_t n = std::size_t(std::ranges::count_if(orders_, mine));
  for (auto const& [who, c] : children_) n += who.role == of;
  return n;
}

EDL_INLINE void processes::spawn(start_order const& order) {
  std::vector<char*> const arguments = detail::pointers(command_),
                           variables = detail::pointers(order.environment);
  std::uint64_t const number = ++started_;
  int const output = said_ ? said_->open(number) : -1;
  bool const also_output = ::isatty(1) == 1 && ::isatty(2) == 1;
  std::uint64_t const kills_before = kills_();
  pid_t const parent = ::getpid(), pid = ::fork();
  if (pid == 0)
    detail::become(program_.c_str(), arguments.data(), variables.data(), parent, output, also_output);
  if (output >= 0) ::close(output);
  int const handle = pid < 0 ? -1 : int(::syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) {
    std::string const why = std::strerror(errno);
    if (pid > 0) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
    on_end_({.who = order.who,
             .code = 127,
             .words = fmt::format("could not be started: {}: {}", pid < 0 ? "fork" : "pidfd_open", why),
             .order = order.order});
    std::lock_guard const lock(mutex_);
    children_.erase(order.who);
    return;
  }
  std::lock_guard const lock(mutex_);
  child& c = children_[order.who];
  invariant(c.pid == 0 && c.handle < 0, "a process is started once in the place that is kept for it");
  c.pid = pid;
  c.handle = handle;
  c.kills_before = kills_before;
  c.number = number;
  c.order = order.order;
  if (c.stop_requested) ::kill(pid, closing_ ? SIGKILL : SIGTERM);  // while it was being started
}

EDL_INLINE void processes::reap(process_id who, child const& c) {
  invariant(c.pid > 0 && c.handle >= 0, "only a process that was started is waited for");
  int status = 0;
  pid_t waited = 0;
  while ((waited = ::waitpid(c.pid, &status, 0)) < 0 && errno == EINTR) {
  }
  int const why = errno;
  ending e{.who = who, .stop_requested = c.stop_requested, .words = {}, .order = c.order};
  if (waited < 0)  // SIGCHLD is ignored, or a wait of the author's code took its status
    e.code = 255, e.words = fmt::format("its exit status is unknown: waitpid: {}", std::strerror(why));
  else if (WIFSIGNALED(status))
    e.signal = WTERMSIG(status), e.memory = e.signal == SIGKILL && !c.stop_requested && killed_for_memory(c);
  else
    e.code = WEXITSTATUS(status);
  // A process that was killed from outside did not print a reason.
  if (std::string const said = words_of(c); !said.empty() && (e.code != 0 || e.signal == SIGABRT))
    e.words = fmt::format("{}: {}", describe(e), said);
  // Before the child leaves `children_`, so that a caller that waits for its end finds the end already
  // reported.
  on_end_(e);
  ::close(c.handle);
  std::lock_guard const lock(mutex_);
  bool const was_there = children_.erase(who) == 1;
  invariant(was_there, "a process ends once");
}

EDL_INLINE std::string processes::words_of(child const& c) {
  if (!said_) return {};
  said_->drain(detail::last_words_within);
  return last_words(said_->last(c.number));
}

// Each kill explains one end. It cannot explain the end of a process that started after the kill, or that
// ended a while after it.
EDL_INLINE bool processes::killed_for_memory(child const& c) {
  explained_ = std::max(explained_, c.kills_before);
  if (kills_() <= explained_) return false;  // the count may be of fewer kills than ends: each is used once
  ++explained_;
  return true;
}

EDL_INLINE int processes::wait_ms() const {
  auto first = clock::time_point::max();
  for (auto const& [who, c] : children_) first = std::min(first, c.kill_at);
  if (children_.empty()) return -1;
  auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(first - clock::now());
  return int(std::clamp<std::int64_t>(left.count() + 1, 1, look_.count()));
}

EDL_INLINE void processes::supervise() {
  for (;;) {
    std::vector<start_order> orders, dropped;
    std::vector<pollfd> handles{{wake_, POLLIN, 0}};
    std::vector<std::pair<process_id, child>> watched;
    int timeout;
    {
      std::lock_guard const lock(mutex_);
      if (closing_ && children_.empty()) return;
      for (start_order& o : orders_)
        if (!children_.contains(o.who)) orders.push_back(std::move(o));
      std::erase_if(orders_, [&](start_order const& o) { return !children_.contains(o.who); });
      for (start_order const& o : orders) children_[o.who];
      dropped.swap(dropped_);
    }
    for (start_order const& o : dropped)
      on_end_({.who = o.who, .stop_requested = true, .words = {}, .order = o.order});
    for (start_order const& o : orders) spawn(o);
    {
      std::lock_guard const lock(mutex_);
      if (closing_ && children_.empty()) return;
      for (auto& [who, c] : children_) {
        if (clock::now() >= c.kill_at) ::kill(c.pid, SIGKILL), c.kill_at = clock::time_point::max();
        invariant(c.pid > 0 && c.handle >= 0, "a watched process has been started");
        handles.push_back({c.handle, POLLIN, 0});
        watched.emplace_back(who, c);
      }
      timeout = wait_ms();
    }
    int const ready = ::poll(handles.data(), handles.size(), timeout);
    if (ready < 0 && errno != EINTR) continue;
    // No process has ended since the last look, so earlier kills belong to other processes.
    if (ready == 0 && clock::now() >= next_look_) {
      explained_ = std::max(explained_, seen_);
      seen_ = kills_();
      next_look_ = clock::now() + look_;
    }
    eventfd_t count;
    if (handles[0].revents) ::eventfd_read(wake_, &count);
    for (std::size_t i = 1; i < handles.size(); ++i)
      if (handles[i].revents) {
        child now = watched[i - 1].second;
        {
          std::lock_guard const lock(mutex_);
          now = children_.at(watched[i - 1].first);  // it may have been asked to stop meanwhile
        }
        reap(watched[i - 1].first, now);
      }
  }
}

}  // namespace edl::platform
