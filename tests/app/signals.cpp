// SPDX-License-Identifier: Apache-2.0
#include "edl/app/signals.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace signals_test {

TEST_CASE("a signal is an event, once") {
  edl::app::signals const s{SIGUSR1, SIGUSR2};
  CHECK_FALSE(s.wait(std::chrono::milliseconds(0)));
  ::kill(::getpid(), SIGUSR2);
  CHECK(s.wait(std::chrono::seconds(10)) == SIGUSR2);
  CHECK_FALSE(s.wait(std::chrono::milliseconds(0)));
}

TEST_CASE("signals that are given back end a process, as if nobody had taken them") {
  pid_t const child = ::fork();
  if (child == 0) {
    edl::app::signals const s{SIGUSR1};
    ::raise(SIGUSR1);
    if (!s.wait(std::chrono::seconds(10))) ::_exit(3);
    s.give_back();
    ::raise(SIGUSR1);
    ::_exit(4);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGUSR1);
}

}  // namespace signals_test
