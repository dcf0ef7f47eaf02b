// SPDX-License-Identifier: Apache-2.0
#include "edl/app/signals.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/job.hpp"

namespace signals_test {

using namespace std::chrono_literals;

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
    s.give_back(SIGUSR1);
    ::raise(SIGUSR1);
    ::_exit(4);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGUSR1);
}

TEST_CASE("one more SIGTERM ends a stop at once where it is no echo of the first, as Ctrl-C does") {
  using namespace std::chrono_literals;
  CHECK(edl::app::ends_at_once(SIGINT, 0s));
  CHECK_FALSE(edl::app::ends_at_once(SIGTERM, 1999ms));
  CHECK(edl::app::ends_at_once(SIGTERM, 2s));
  CHECK_FALSE(edl::app::ends_at_once(SIGHUP, 1h));
}

TEST_CASE("a signal ends a process at once whose work does not ask for it, with a line") {
  // So many records that their tasks take minutes to be put in order; the file is sparse.
  job::scratch const dir;
  std::string const data = dir / "many.points";
  std::ofstream{data};
  std::filesystem::resize_file(data, 36ull * 30'000'000'000);
  for (std::vector<std::string> const& more :
       {std::vector<std::string>{}, {"--num_workers=1", "--num_ps_pods=1"}})
    for (int const signal : {SIGTERM, SIGINT}) {
      std::vector<std::string> line{"train", "--training_data=" + data};
      line.insert(line.end(), more.begin(), more.end());
      job::run it(line);
      REQUIRE(it.takes_signals_as_events());
      ::kill(it.pid(), signal);
      CHECK(it.wait(10s) == 128 + signal);
      // The command says so itself, where it starts no others.
      if (more.empty()) CHECK(job::has(it.log(), "before the first step: nothing to save yet"));
    }
}

TEST_CASE("what nohup has taken from a program stays taken") {
  auto const before = ::signal(SIGHUP, SIG_IGN);
  {
    edl::app::signals const s{SIGHUP, SIGUSR2};
    ::raise(SIGHUP);
    ::raise(SIGUSR2);
    CHECK(s.wait(std::chrono::seconds(10)) == SIGUSR2);
    CHECK_FALSE(s.wait(std::chrono::milliseconds(0)));
  }
  ::signal(SIGHUP, before);
}

TEST_CASE("SIGTERM from a stranger is for the parent to decide, one from the parent is an event") {
  using edl::app::signals;
  signals const asked{edl::app::leave_signal()};
  pid_t const child = ::fork();
  if (child == 0) {
    signals const s({SIGTERM}, signals::terminate::as_parent_says);
    ::raise(SIGTERM);  // not the parent
    if (s.wait(std::chrono::seconds(10))) ::_exit(1);
    ::_exit(s.wait(std::chrono::seconds(10)) == SIGTERM ? 0 : 2);
  }
  auto const request = asked.next(std::chrono::seconds(10));
  REQUIRE(request);
  CHECK(request->from == child);
  ::kill(child, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace signals_test
