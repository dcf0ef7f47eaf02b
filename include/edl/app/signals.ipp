// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "edl/app/signals.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::app {

EDL_INLINE bool ends_at_once(int signal, std::chrono::steady_clock::duration after) {
  return signal == SIGINT || (signal == SIGTERM && after >= std::chrono::seconds(2));
}

EDL_INLINE signals::signals(std::initializer_list<int> which, terminate how) : termination_(how) {
  sigemptyset(&set_);
  for (int s : which) {
    struct sigaction before{};
    bool const ignored = s == SIGHUP && ::sigaction(s, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (!ignored) sigaddset(&set_, s);
  }
  ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  handle_ = ::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (handle_ < 0) throw error(fmt::format("cannot watch signals: {}", std::strerror(errno)));
}

EDL_INLINE signals::~signals() { ::close(handle_); }

EDL_INLINE std::optional<signals::arrival> signals::next(std::chrono::milliseconds timeout) const {
  pollfd p{handle_, POLLIN, 0};
  signalfd_siginfo info{};
  if (::poll(&p, 1, int(timeout.count())) <= 0 || ::read(handle_, &info, sizeof info) != sizeof info)
    return std::nullopt;
  arrival const one{int(info.ssi_signo), pid_t(info.ssi_pid)};
  if (termination_ == terminate::here || one.signal != SIGTERM || one.from == ::getppid()) return one;
  ::kill(::getppid(), leave_signal());
  return std::nullopt;
}

EDL_INLINE std::optional<int> signals::wait(std::chrono::milliseconds timeout) const {
  auto const one = next(timeout);
  return one ? std::optional(one->signal) : std::nullopt;
}

EDL_INLINE void signals::give_back(int signal) const {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

EDL_INLINE void tell_early_stop(logger const& log, int signal, std::string_view what) {
  log.warning(fmt::format("stopped by {} before {}: nothing to save yet",
                          signal == SIGINT    ? "Ctrl-C"
                          : signal == SIGTERM ? "SIGTERM"
                                              : "SIGHUP",
                          what));
}

EDL_INLINE early_stop::early_stop(signals const& stop, logger const& log, std::function<int(int signal)> code,
                                  std::string_view before)
    : watch_([&stop, &log, code = std::move(code), before](std::stop_token const& over) {
        while (!over.stop_requested())
          if (auto const signal = stop.wait(std::chrono::milliseconds(20))) {
            tell_early_stop(log, *signal, before);
            std::_Exit(code(*signal));
          }
      }) {}

}  // namespace edl::app
