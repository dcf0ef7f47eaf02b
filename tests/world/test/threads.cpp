// SPDX-License-Identifier: Apache-2.0
// Threads, time, processes and signals of the simulated system.
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "world/test/harness.hpp"

namespace {

using namespace harness;

/// Threads that take turns as the seed says.
void scuffle(notes note) {
  std::mutex m;
  std::string order;
  std::vector<std::jthread> all;
  for (char name : {'a', 'b', 'c'})
    all.emplace_back([&, name] {
      for (int i = 0; i < 4; ++i) {
        std::this_thread::yield();
        std::lock_guard const lock(m);
        order += name;
      }
    });
  all.clear();
  note("{} {}", order, std::random_device()());
}

}  // namespace

TEST_CASE("equal seeds give equal histories, other seeds others") {
  auto const a = history(scuffle, 7), b = history(scuffle, 7), c = history(scuffle, 8);
  CHECK(a.failure.empty());
  CHECK(a.hash == b.hash);
  CHECK(a.said == b.said);
  CHECK(a.hash != c.hash);
  CHECK(a.said != c.said);
}

TEST_CASE("time passes while all wait, and costs nothing") {
  auto const o = history([](notes note) {
    auto const before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(12h);
    note("{}", std::chrono::floor<std::chrono::hours>(std::chrono::steady_clock::now() - before).count());
    std::mutex m;
    std::condition_variable c;
    std::unique_lock lock(m);
    note("{}", c.wait_for(lock, 1h) == std::cv_status::timeout);
    note("{}", std::async(std::launch::async, [] { return std::this_thread::sleep_for(1h), 42; }).get());
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"12", "true", "42"}));
  CHECK(o.virtual_time > 14h);
}

TEST_CASE("threads that wait for each other for ever end the history, with what they wait for") {
  auto const o = history([](notes) {
    std::promise<void> never;
    never.get_future().wait();
  });
  CHECK(o.failure.find("every thread waits") != std::string::npos);
  CHECK(o.failure.find("world thread 1 waits for futex") != std::string::npos);
}

TEST_CASE("readers share a lock, and a writer has it alone") {
  auto const o = history([](notes note) {
    std::shared_mutex m;
    std::atomic<int> readers = 0, most = 0;
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i)
      all.emplace_back([&] {
        std::shared_lock const lock(m);
        most = std::max(most.load(), ++readers);
        std::this_thread::sleep_for(1ms);
        --readers;
      });
    all.emplace_back([&] {
      std::unique_lock const lock(m);
      note("readers beside the writer: {}", readers.load());
      std::this_thread::sleep_for(1ms);
    });
    all.clear();
    note("several: {}", most > 1);
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"readers beside the writer: 0", "several: true"}));
}

TEST_CASE("a process has its own environment, name, number, end and output") {
  auto const o = history([](notes note) {
    world::on_line([&](world::line const& l) { note("{} says {}", world::name_of(l.from), l.text); });
    auto const main = [](int count, char** arguments) {
      std::fprintf(stderr, "%d arguments, the last is %s, and COLOUR=%s\n", count, arguments[count - 1],
                   std::getenv("COLOUR"));
      ::setenv("COLOUR", "none", 1);
      std::this_thread::sleep_for(1ms);
      std::fprintf(stderr, "COLOUR=%s\n", std::getenv("COLOUR"));
      return ::getpid();
    };
    auto const a = world::start(
        {.name = "a", .main = main, .arguments = {"p", "x"}, .environment = {{"COLOUR", "red"}}});
    world::wait(a);
    auto const b =
        world::start({.name = "b", .main = main, .arguments = {"p"}, .environment = {{"COLOUR", "blue"}}});
    world::wait(b);
    note("{} {}", world::ended(a)->code == a, world::ended(b)->code == b);
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) ==
        text({"a says 2 arguments, the last is x, and COLOUR=red", "a says COLOUR=none",
              "b says 1 arguments, the last is p, and COLOUR=blue", "b says COLOUR=none", "true true"}));
}

TEST_CASE("exit, abort and signals end a process with all its threads, and no other") {
  auto const o = history([](notes note) {
    auto const start = [](auto what) {
      return world::start({.name = "p", .main = [what](int, char**) {
                             std::thread([] { std::this_thread::sleep_for(100h); }).detach();
                             std::thread(what).detach();
                             std::this_thread::sleep_for(100h);
                             return 0;
                           }});
    };
    world::pid const all[] = {start([] { std::_Exit(3); }), start([] { std::abort(); }),
                              start([] { throw std::runtime_error("nobody takes it"); }),
                              start([] { ::raise(SIGTERM); }), start([] { ::kill(::getpid(), SIGKILL); })};
    for (world::pid p : all) {
      world::wait(p);
      note("{} {}", world::ended(p)->code, world::ended(p)->signal);
    }
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"3 0", "0 6", "0 6", "0 15", "0 9"}));
  CHECK(o.virtual_time < 1h);
}

TEST_CASE("a blocked signal waits for its descriptor; a stopped process does nothing until it goes on") {
  auto const o = history([](notes note) {
    auto const p =
        world::start({.name = "p", .main = [](int, char**) {
                        sigset_t term;
                        sigemptyset(&term);
                        sigaddset(&term, SIGTERM);
                        ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
                        int const fd = ::signalfd(-1, &term, 0);
                        signalfd_siginfo info{};
                        return ::read(fd, &info, sizeof info) == sizeof info ? int(info.ssi_signo) : 1;
                      }});
    std::this_thread::sleep_for(1s);
    world::kill(p, SIGSTOP);
    world::kill(p, SIGTERM);
    note("{}", world::wait_for(p, 1h));
    world::kill(p, SIGCONT);
    note("{}", world::wait_for(p, 1s));
    note("{}", world::ended(p)->code);
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"false", "true", "15"}));
}

TEST_CASE("fork and exec start a program, whose end its parent hears of") {
  auto const o = history([](notes note) {
    world::install("/bin/child", [](int count, char** arguments) {
      std::fprintf(stdout, "%s %d %s\n", arguments[0], count, std::getenv("OF"));
      return 7;
    });
    int ends[2];
    static_cast<void>(!::pipe(ends));
    pid_t const child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], 1);
      char name[] = "child", of[] = "OF=parent";
      char* const arguments[] = {name, nullptr};
      char* const environment[] = {of, nullptr};
      ::execve("/bin/child", arguments, environment);
      ::_exit(127);
    }
    ::close(ends[1]);
    char text[64] = "";
    static_cast<void>(!::read(ends[0], text, sizeof text));
    int status = 0;
    note("{}", ::waitpid(child, &status, 0) == child);
    note("{}", WEXITSTATUS(status));
    note("{}", std::string(text).substr(0, 14));
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"true", "7", "child 1 parent"}));
}
