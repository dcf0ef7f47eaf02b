// SPDX-License-Identifier: Apache-2.0
#include "edl/app/running.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "app/runtime_directory.hpp"
#include "edl/core/error.hpp"
#include "edl/job/master/journal.hpp"

namespace running_test {

using namespace edl::app;
namespace fs = std::filesystem;

namespace {

void begin(job_directory const& in, std::string const& token, std::string const& checkpoints) {
  edl::master::persisted_state known;
  known.addresses = {"tcp:127.0.0.1:1"};
  edl::master::journal(journal_in(in), "run").write(known);
  announce(in, "mnist", token, checkpoints);
}

/// Another process with a job of the same name, as long as it lives.
struct other_job {
  explicit other_job(std::string const& checkpoints) {
    REQUIRE(::pipe(there) == 0);
    REQUIRE(::pipe(over) == 0);
    pid = ::fork();
    if (pid == 0) {
      ::close(over[1]);
      char byte = 0;
      {
        job_directory const in;
        begin(in, "its token, which is a long one", checkpoints);
        if (::write(there[1], &byte, 1) != 1) ::_exit(1);
        if (::read(over[0], &byte, 1) != 0) ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(there[1]);
    char byte;
    REQUIRE(::read(there[0], &byte, 1) == 1);
  }
  ~other_job() {
    ::close(over[1]);
    ::waitpid(pid, nullptr, 0);
    for (int fd : {there[0], over[0]}) ::close(fd);
  }
  int there[2], over[2];
  pid_t pid;
};

std::string refusal(std::string const& name) {
  try {
    find_job(name);
  } catch (edl::error const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a job is found as long as it runs, by nobody else") {
  runtime_directory const r;
  ::umask(0);
  {
    job_directory const own;
    begin(own, "a token", "a");
    CHECK(find_job("mnist").token == "a token");
    CHECK(find_job("mnist").master.size() == 1);
    CHECK(find_job(std::to_string(::getpid())).name == "mnist");
    struct stat s{};
    REQUIRE(::stat((own.path() + "/job.json").c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0600);
    CHECK(refusal("other").starts_with("no job 'other' of this user runs on this machine; "));
  }
  ::umask(022);
  CHECK(refusal("mnist").starts_with("no job 'mnist' "));
}

TEST_CASE("of two jobs of one name none is taken silently, and the one that goes on is found") {
  runtime_directory const r;
  job_directory const own;
  begin(own, "a token", "a");
  {
    other_job const second("b\x1b[31m");
    std::string const why = refusal("mnist"), mine = std::to_string(::getpid()),
                      its = std::to_string(second.pid);
    CAPTURE(why);
    CHECK(why.starts_with("2 jobs 'mnist' run on this machine: process "));
    CHECK(why.find("process " + mine + " (--checkpoint_dir=a)") != why.npos);
    CHECK(why.find("process " + its + " (--checkpoint_dir=b [31m)") != why.npos);
    CHECK(why.ends_with("; --job_name=N takes the one of process N"));
    CHECK(find_job(mine).token == "a token");
    CHECK(find_job(its).token != "a token");
  }
  CHECK(find_job("mnist").token == "a token");
}

TEST_CASE("no token lies where others may write") {
  runtime_directory const r;
  std::string const open = r.path + "/open";
  fs::create_directory(open);
  REQUIRE(::chmod(open.c_str(), 0777) == 0);
  ::setenv("XDG_RUNTIME_DIR", open.c_str(), 1);
  job_directory const own;
  begin(own, "a token", "a");
  CHECK(find_job("mnist").token == "a token");
  CHECK(fs::is_empty(open));
}

}  // namespace running_test
