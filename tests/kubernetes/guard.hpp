// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace edl::testing::kubernetes {

/// A process that outlives this one for a moment, whatever ends it, and kills the process groups that are
/// left. The kernel ends a container's first process with us, but not what that has started.
class guard {
 public:
  guard() {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) return;
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // in the guard, for good
    process_ = ::fork();
    if (process_ == 0) keep();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::close(pipe_[0]);
  }
  guard(guard const&) = delete;
  ~guard() {
    ::close(pipe_[1]);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }

  void add(pid_t group) const { tell(group); }
  void forget(pid_t group) const { tell(-group); }

 private:
  void tell(pid_t what) const { static_cast<void>(!::write(pipe_[1], &what, sizeof what)); }

  // Only what is safe after a fork of a process with threads.
  [[noreturn]] void keep() const {
    ::setsid();
    int const in = ::dup2(pipe_[0], 3);
    ::syscall(SYS_close_range, 4u, ~0u, 0u);
    ::syscall(SYS_close_range, 0u, 2u, 0u);
    std::array<pid_t, 4096> groups{};
    for (pid_t said; ::read(in, &said, sizeof said) == sizeof said;) {
      auto const slot = std::find(groups.begin(), groups.end(), said < 0 ? -said : 0);
      if (slot != groups.end()) *slot = said < 0 ? 0 : said;
    }
    for (pid_t const g : groups)
      if (g > 0) ::kill(-g, SIGKILL);
    ::_exit(0);
  }

  int pipe_[2] = {-1, -1};
  pid_t process_ = -1;
};

}  // namespace edl::testing::kubernetes
