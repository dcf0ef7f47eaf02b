// SPDX-License-Identifier: Apache-2.0
#include "edl/app/signals.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

TEST_CASE("a signal is an event, once") {
  edl::app::signals const s{SIGUSR1, SIGUSR2};
  CHECK_FALSE(s.wait(std::chrono::milliseconds(0)));
  ::kill(::getpid(), SIGUSR2);
  CHECK(s.wait(std::chrono::seconds(10)) == SIGUSR2);
  CHECK_FALSE(s.wait(std::chrono::milliseconds(0)));
}
