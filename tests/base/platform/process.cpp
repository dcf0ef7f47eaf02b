// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <fstream>

namespace process_test {

using namespace edl::platform;
using edl::process_id;
using edl::role;
using namespace std::chrono_literals;

namespace {

/// Collects endings and waits for a number of them.
struct endings {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ending> all;

  auto sink() {
    return [this](ending const& e) {
      std::lock_guard const lock(mutex);
      all.push_back(e);
      changed.notify_all();
    };
  }
  std::size_t count() {
    std::lock_guard const lock(mutex);
    return all.size();
  }
  bool wait(std::size_t n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, [&] { return all.size() >= n; });
  }
};

std::string slurp(std::string const& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool alive(pid_t pid) {
  std::string const text = slurp("/proc/" + std::to_string(pid) + "/stat");
  return !text.empty() && text.substr(text.rfind(')') + 2, 1) != "Z";
}

bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  for (auto waited = 0ms; waited < limit; waited += 10ms) {
    if (!alive(pid)) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

}  // namespace

TEST_CASE("an instance gets its environment, and its exit code is reported") {
  endings e;
  processes p("/bin/sh", {"sh", "-c", "exit $EDL_TEST_CODE"}, e.sink());
  p.start({role::worker, 3}, {{"EDL_TEST_CODE", "7"}});
  REQUIRE(e.wait(1));
  CHECK(e.all[0].who == process_id{role::worker, 3});
  CHECK(e.all[0].code == 7);
  CHECK(e.all[0].failed());
  CHECK(describe(e.all[0]) == "exited with code 7");
}

TEST_CASE("an end whose status somebody else took is no success") {
  endings e;
  processes p("/bin/sh", {"sh", "-c", "exit 0"}, e.sink());
  auto* const before = std::signal(SIGCHLD, SIG_IGN);  // the system reaps by itself
  p.start({role::worker, 3}, {});
  bool const ended = e.wait(1);
  std::signal(SIGCHLD, before);
  REQUIRE(ended);
  CHECK(e.all[0].failed());
  CHECK(e.all[0].words == "its exit status is unknown: waitpid: No child processes");
}

TEST_CASE("the end of a process tells what it said at last") {
  std::mutex mutex;
  std::string seen;
  line_reader said([&](std::string_view line) {
    std::lock_guard const lock(mutex);
    seen += line;
  });
  endings e;
  processes p("/bin/sh", {"sh", "-c", "eval \"$SCRIPT\""}, e.sink(), &said);
  std::size_t ends = 0;
  auto const end_of = [&](std::string const& script) {
    p.start({role::worker, 0}, {{"SCRIPT", script}});
    REQUIRE(e.wait(++ends));
    while (!p.all().empty()) std::this_thread::yield();
    return describe(e.all.back());
  };
  CHECK(end_of("echo begin >&2; printf 'no such\\033 library' >&2; exit 3") ==
        "exited with code 3: no such  library");
  CHECK(end_of("exit 3") == "exited with code 3");  // the other one's line is not this one's
  CHECK(end_of("echo '  what():  too much' >&2; kill -ABRT $$") ==
        "was killed by signal 6 (Aborted): what():  too much");
  CHECK(end_of("echo busy >&2; kill -KILL $$") == "was killed by signal 9 (Killed)");
  CHECK(end_of("echo well >&2; exit 0") == "exited with code 0");
  CHECK(end_of("echo '[2026-11-20 13:00:00,123] [INFO] [a.ipp:1:f] [worker-0] all is well' >&2; exit 1") ==
        "exited with code 1");
  CHECK(end_of("echo '[2026-11-20 13:00:00,123] [CRITICAL] [server-0] no memory' >&2; exit 1") ==
        "exited with code 1: no memory");
}

TEST_CASE("a kill is told apart from a stop that was asked for") {
  endings e;
  processes p("/bin/sleep", {"sleep", "100"}, e.sink());
  p.start({role::worker, 0}, {});
  p.start({role::worker, 1}, {});
  while (!p.pid({role::worker, 0}) || !p.pid({role::worker, 1})) std::this_thread::yield();
  ::kill(p.pid({role::worker, 0}), SIGKILL);
  REQUIRE(e.wait(1));
  CHECK(e.all[0].signal == SIGKILL);
  CHECK(e.all[0].failed());
  p.stop({role::worker, 1}, 10s);
  REQUIRE(e.wait(2));
  CHECK(e.all[1].stop_requested);
  CHECK_FALSE(e.all[1].failed());
}

TEST_CASE("a kill for memory explains one end, and none of who was started after it") {
  std::atomic<std::uint64_t> kills{3};
  endings e;
  processes p("/bin/sleep", {"sleep", "100"}, e.sink(), nullptr, [&] { return kills.load(); });
  std::size_t ended = 0;
  auto const start = [&](process_id who) {
    p.start(who, {});
    while (!p.pid(who)) std::this_thread::yield();
  };
  auto const memory = [&](process_id who) {
    ::kill(p.pid(who), SIGKILL);
    REQUIRE(e.wait(++ended));
    return e.all.back().memory;
  };
  process_id const a{role::worker, 0}, b{role::worker, 1}, c{role::worker, 2};
  start(a), start(b);
  kills = 5;  // of this group, perhaps of others in it
  start(c);
  CHECK_FALSE(memory(c));
  CHECK_FALSE(memory(a));
  kills = 6;
  CHECK(memory(b));
}

TEST_CASE("a kill for memory that no end follows was another's, and explains no later one") {
  std::atomic<std::uint64_t> kills{3}, looks{0};
  endings e;
  auto const count = [&] {
    ++looks;
    return kills.load();
  };
  processes p("/bin/sleep", {"sleep", "100"}, e.sink(), nullptr, count, 1ms);
  process_id const a{role::worker, 0};
  p.start(a, {});
  while (!p.pid(a)) std::this_thread::yield();
  kills = 4;
  for (std::uint64_t const before = looks; looks < before + 3;) std::this_thread::yield();
  ::kill(p.pid(a), SIGKILL);
  REQUIRE(e.wait(1));
  CHECK_FALSE(e.all.back().memory);
}

TEST_CASE("a process that the system does not give is told with the system's reason") {
  endings e;
  processes p("/bin/true", {"true"}, e.sink(), nullptr, [] { return std::uint64_t(0); });
  rlimit usual{};
  ::getrlimit(RLIMIT_NOFILE, &usual);
  int const next = ::open("/dev/null", O_RDONLY);
  ::close(next);
  rlimit const none{rlim_t(next), usual.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  p.start({role::worker, 0}, {});
  bool const told = e.wait(1);
  ::setrlimit(RLIMIT_NOFILE, &usual);
  REQUIRE(told);
  CHECK(e.all[0].failed());
  CHECK(describe(e.all[0]) == "could not be started: pidfd_open: Too many open files");
}

TEST_CASE("who does not leave within its grace is killed") {
  endings e;
  processes p("/bin/sh",
              {"sh", "-c", "trap '' TERM; echo ready > $EDL_TEST_FILE; while :; do sleep 0.05; done"},
              e.sink());
  std::string const file = "process-test-" + std::to_string(::getpid());
  p.start({role::server, 0}, {{"EDL_TEST_FILE", file}});
  while (!std::ifstream(file).good()) std::this_thread::sleep_for(5ms);
  p.stop({role::server, 0}, 50ms);
  REQUIRE(e.wait(1));
  CHECK(e.all[0].signal == SIGKILL);
  ::unlink(file.c_str());
}

TEST_CASE("who is told to stop before it is started has ended, as one that was asked") {
  for (int i = 0; i < 50; ++i) {
    endings e;
    processes p("/bin/sleep", {"sleep", "100"}, e.sink());
    p.start({role::master, 0}, {});
    for (int k = 0; k < i; ++k) std::this_thread::yield();  // at any point of its start
    p.stop({role::master, 0}, 10s);
    REQUIRE(e.wait(1));
    CHECK(e.all[0].stop_requested);
    CHECK_FALSE(e.all[0].failed());
  }
}

TEST_CASE("a child ignores what ends a terminal, and leaves when it is let") {
  endings e;
  processes p("/bin/sleep", {"sleep", "100"}, e.sink());
  process_id const who{role::worker, 0};
  p.start(who, {});
  while (!p.pid(who)) std::this_thread::yield();
  // It may not have become the program yet, and ignores them already by then.
  while (slurp("/proc/" + std::to_string(p.pid(who)) + "/comm") != "sleep\n") std::this_thread::yield();
  for (int s : {SIGHUP, SIGINT}) ::kill(p.pid(who), s);
  p.let_leave(::getpid(), false);  // no child
  p.let_leave(p.pid(who), true);   // nobody has asked it
  CHECK(alive(p.pid(who)));
  p.let_leave(p.pid(who), false);
  REQUIRE(e.wait(1));
  CHECK(e.all[0].signal == SIGTERM);
  CHECK_FALSE(e.all[0].stop_requested);
}

TEST_CASE("what ends a terminal ends no child of a parent that holds it back, at any point of its start") {
  pid_t const parent = ::fork();
  if (parent == 0) {
    ::setpgid(0, 0);
    sigset_t held;
    sigemptyset(&held);
    for (int s : {SIGHUP, SIGTERM}) sigaddset(&held, s);
    ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
    int bad = 0;
    {
      endings e;
      processes p("/bin/sleep", {"sleep", "100"}, e.sink());
      std::atomic<bool> over{false};
      std::thread terminal([&] {
        while (!over) ::kill(0, SIGHUP);
      });
      for (std::uint32_t i = 0; i < 30 && bad == 0; ++i) {
        process_id const who{role::worker, i};
        p.start(who, {});
        for (pid_t pid = 0; pid == 0 && e.count() == i;) p.let_leave(pid = p.pid(who), false);
        bad = !e.wait(i + 1) || e.all[i].signal != SIGTERM;
      }
      over = true;
      terminal.join();
    }
    ::_exit(bad);
  }
  int status = 0;
  REQUIRE(::waitpid(parent, &status, 0) == parent);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a program that does not exist ends with 127") {
  endings e;
  processes p("/does/not/exist", {"it"}, e.sink());
  p.start({role::worker, 0}, {});
  REQUIRE(e.wait(1));
  CHECK(e.all[0].code == 127);
}

TEST_CASE("an instance that is told twice to start after the one that runs starts once") {
  endings e;
  process_id const who{role::worker, 0};
  processes p("/bin/sleep", {"sleep", "100"}, e.sink());
  auto const other_than = [&](pid_t before) {
    for (;;)
      if (pid_t const pid = p.pid(who); pid != 0 && pid != before) return pid;
  };
  p.start(who, {});
  pid_t const first = other_than(0);
  p.start(who, {});
  p.start(who, {});
  ::kill(first, SIGKILL);
  ::kill(other_than(first), SIGKILL);
  REQUIRE(e.wait(2));
  while (p.pid(who) != 0) std::this_thread::yield();
  CHECK(p.running(role::worker) == 0);
}

TEST_CASE("the destructor leaves nothing running") {
  endings e;
  pid_t pid = 0;
  {
    processes p("/bin/sleep", {"sleep", "100"}, e.sink());
    p.start({role::worker, 0}, {});
    while (!(pid = p.pid({role::worker, 0}))) std::this_thread::yield();
  }
  CHECK_FALSE(alive(pid));
}

TEST_CASE("children die with a parent that is killed, and hold none of its descriptors") {
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  pid_t const parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    processes p("/bin/sleep", {"sleep", "100"}, [](ending const&) {});
    p.start({role::worker, 0}, {});
    pid_t child;
    while (!(child = p.pid({role::worker, 0}))) std::this_thread::yield();
    while (::write(pipe_ends[1], &child, sizeof child) != sizeof child) {
    }
    for (;;) ::pause();
  }
  ::close(pipe_ends[1]);
  pid_t child = 0;
  REQUIRE(::read(pipe_ends[0], &child, sizeof child) == sizeof child);
  CHECK(alive(child));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(gone_within(child, 5000ms));
  char byte;
  CHECK(::read(pipe_ends[0], &byte, 1) == 0);  // the pipe's other end is closed everywhere
  ::close(pipe_ends[0]);
}

}  // namespace process_test
