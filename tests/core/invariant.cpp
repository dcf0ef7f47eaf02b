// SPDX-License-Identifier: Apache-2.0
#include "edl/core/invariant.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace invariant_test {

TEST_CASE("a broken invariant ends the process with one line that names it and its place") {
  edl::invariant(true, "never told");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t const child = ::fork();
  if (child == 0) {
    ::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], 2);
    edl::invariant(1 + 1 == 3, "numbers add up");
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said(200, '\0');
  said.resize(std::size_t(std::max<ssize_t>(0, ::read(ends[0], said.data(), said.size()))));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(said.find("edl: broken invariant: numbers add up (") == 0);
  CHECK(said.find("invariant.cpp:") != std::string::npos);
  CHECK(said.back() == '\n');
}

}  // namespace invariant_test
