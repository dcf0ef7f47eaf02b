// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/line_reader.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "edl/base/platform/process.hpp"

namespace line_reader_test {

using namespace edl::platform;
using edl::role;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

struct collector {
  std::mutex mutex;
  lines all;
  auto sink() {
    return [this](std::string_view line) {
      std::lock_guard const lock(mutex);
      all.emplace_back(line);
    };
  }
  lines sorted() {
    std::lock_guard const lock(mutex);
    lines copy = all;
    std::ranges::sort(copy);
    return copy;
  }
};

void write_to(int fd, std::string_view text) {
  while (!text.empty()) {
    auto const n = ::write(fd, text.data(), text.size());
    REQUIRE(n > 0);
    text.remove_prefix(std::size_t(n));
  }
}

}  // namespace

TEST_CASE("a line is told when it is whole, or when nobody can write the rest") {
  collector c;
  line_reader r(c.sink());
  int const a = r.open(), b = r.open();
  REQUIRE(a >= 0);
  REQUIRE(b >= 0);
  write_to(a, "on");
  write_to(b, "two\n\nthr");
  r.drain();
  CHECK(c.sorted() == lines{"", "two"});
  write_to(a, "e\n");
  r.drain();
  CHECK(c.sorted() == lines{"", "one", "two"});
  ::close(b);
  r.drain();
  CHECK(c.sorted() == lines{"", "one", "thr", "two"});
  ::close(a);
}

TEST_CASE("what is left is told at the end; a line without an end is cut") {
  collector c;
  std::string const endless(200'000, 'x');
  {
    line_reader r(c.sink());
    int const a = r.open();
    write_to(a, endless);
    ::close(a);
    int const open_still = r.open();
    write_to(open_still, "rest");
    ::close(open_still);
  }
  lines const all = c.sorted();
  REQUIRE(all.size() >= 4);
  CHECK(all.front() == "rest");
  std::string together;
  for (std::string const& line : all) {
    if (line != "rest") together += line;
    CHECK(line.size() < 100'000);
  }
  CHECK(together == endless);
}

TEST_CASE("the last line of each pipe is known, blank ones aside") {
  line_reader r([](std::string_view) {});
  int const a = r.open(1), b = r.open(2), nobody = r.open();
  write_to(a, "first\nof a\n \n\n");
  write_to(b, "of b, not ended");
  write_to(nobody, "more\n");
  ::close(b);
  r.drain();
  CHECK(r.last(1) == "of a");
  CHECK(r.last(1).empty());
  CHECK(r.last(2) == "of b, not ended");
  ::close(a), ::close(nobody);
}

TEST_CASE("nobody waits for one who writes all the time, nor for a terminal that is held") {
  std::atomic<bool> over{false};
  std::mutex terminal;
  line_reader r([&](std::string_view) { std::lock_guard const lock(terminal); });
  int const flood = r.open(), quiet = r.open(1);
  ::signal(SIGPIPE, SIG_IGN);
  std::jthread const writer([&] {
    std::string const line(1000, 'x');
    while (!over) write_to(flood, line + '\n');
    ::close(flood);
  });
  write_to(quiet, "mine\n");
  r.drain();
  CHECK(r.last(1) == "mine");
  {
    std::lock_guard const held(terminal);
    r.drain(10ms);
  }
  over = true;
  ::close(quiet);
}

TEST_CASE("what children say on standard error comes line by line, and Ctrl-C does not reach them") {
  collector c;
  {
    line_reader r(c.sink());
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<ending> ends;
    processes p(
        "/bin/sh", {"sh", "-c", "echo $WORKER_ID ready >&2; kill -INT $$; printf 'and on' >&2; exit 3"},
        [&](ending const& e) {
          std::lock_guard const lock(mutex);
          ends.push_back(e);
          changed.notify_all();
        },
        &r);
    for (std::uint32_t id : {1u, 2u}) p.start({role::worker, id}, {{"WORKER_ID", std::to_string(id)}});
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, 20s, [&] { return ends.size() == 2; }));
    for (ending const& e : ends) CHECK(e.code == 3);
  }
  CHECK(c.sorted() == lines{"1 ready", "2 ready", "and on", "and on"});
}

}  // namespace line_reader_test
