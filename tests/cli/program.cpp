// SPDX-License-Identifier: Apache-2.0
#include "edl/cli/program.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/error.hpp>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "edl/core/error.hpp"

namespace program_test {

namespace {

/// What `act` returns in a process of its own.
template <class Act>
int in_child(Act&& act) {
  std::fflush(stdout);
  pid_t const child = ::fork();
  if (child == 0) ::_exit(act());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int printed() {
  edl::cli::hold_standard_streams();
  std::fputs("a result\n", stdout);
  std::fflush(stdout);  // as commands do that go on
  try {
    edl::cli::flush_output();
    return 0;
  } catch (edl::error const&) {
    return 1;
  }
}

}  // namespace

TEST_CASE("output that is lost is an error") {
  auto const to = [](char const* path) {
    return in_child([path] {
      ::dup2(::open(path, O_WRONLY), 1);
      return printed();
    });
  };
  CHECK(to("/dev/null") == 0);
  CHECK(to("/dev/full") == 1);
  CHECK(in_child([] {
          ::close(1);
          return printed();
        }) == 1);
}

TEST_CASE("no file takes the place of a standard stream that is closed") {
  CHECK(in_child([] {
          for (int fd : {0, 1, 2}) ::close(fd);
          edl::cli::hold_standard_streams();
          int const next = ::open("/dev/null", O_WRONLY);
          return next > 2 && ::write(1, "x", 1) < 0 && ::write(2, "x", 1) == 1 ? 0 : 1;
        }) == 0);
}

TEST_CASE("an error that cannot be printed ends no process by a signal") {
  for (char const* const place : {"/dev/full", ""})
    CHECK(in_child([place] {
            ::close(2);
            if (*place) ::open(place, O_WRONLY);  // the lowest that is free
            edl::cli::complain("edl", "it does not work");
            return 7;
          }) == 7);
}

TEST_CASE("a program without commands fails where its help is lost") {
  auto const help = [](char const* path) {
    return in_child([path] {
      ::dup2(::open(path, O_WRONLY), 1);
      ::dup2(::open("/dev/null", O_WRONLY), 2);
      return edl::cli::run_program({.command = "x"}, "Does it.", {"--help"}, [](auto const&) { return 0; });
    });
  };
  CHECK(help("/dev/null") == 0);
  CHECK(help("/dev/full") == 1);
}

TEST_CASE("a thread that is refused is told with what limits it") {
  int const refused = EAGAIN;
  for (auto const& from : {std::error_code(refused, std::generic_category()),
                           std::error_code(refused, asio::error::get_system_category())})
    CHECK(edl::cli::text_of(std::system_error(from, "thread"))
              .find("the system refuses one more thread; raise its limit of processes (ulimit -u") == 0);
  CHECK(edl::cli::text_of(edl::error("a.csv: is empty")) == "a.csv: is empty");
}

}  // namespace program_test
