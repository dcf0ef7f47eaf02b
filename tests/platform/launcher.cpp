#include "edl/platform/launcher.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>

using namespace edl::platform;
using namespace std::chrono_literals;

namespace {

edl::net::node_options options() {
  return {.job = "j",
          .secret = edl::net::token("a secret of some length"),
          .log = edl::logger(edl::severity::critical)};
}

/// What a master has been told, with its own connection to the launcher.
struct master {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<ending, std::uint64_t>> endings;
  std::optional<std::vector<instance>> running;
  edl::net::node node{options()};
  launched it;

  master(std::string const& address, std::uint64_t seen)
      : it(node, address, {{"SCRIPT", "[ \"$WORKER_ID\" = 0 ] && exit 3; exec sleep 100"}}, seen,
           {.ended =
                [this](ending const& e, std::uint64_t number) {
                  std::lock_guard const lock(mutex);
                  endings.emplace_back(e, number);
                  changed.notify_all();
                },
            .leaving = {},
            .found =
                [this](std::vector<instance> const& r) {
                  std::lock_guard const lock(mutex);
                  running = r;
                  changed.notify_all();
                },
            .scale = {}}) {}
  ~master() { node.stop(); }

  bool wait(auto condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, condition);
  }
  void start(instance who) {
    node.post([=, this] { it.start(who, std::nullopt); });
  }
};

}  // namespace

TEST_CASE("processes outlive the master that had them started; the next one hears what it missed, once") {
  edl::net::node node(options());
  launcher l(node, "/bin/sh", {"sh", "-c", "eval \"$SCRIPT\""}, [](ending const&) {});
  instance const a{role::worker, 0}, b{role::worker, 1}, c{role::server, 0};
  {
    master first(l.address(), 0);
    REQUIRE(first.wait([&] { return first.running.has_value(); }));
    CHECK(first.running->empty());
    first.start(a);
    first.start(b);
    REQUIRE(first.wait([&] { return first.endings.size() == 1; }));
    CHECK(first.endings[0].first.who == a);
    CHECK(first.endings[0].first.code == 3);
    CHECK(first.endings[0].second == 1);
    first.start(c);
    // Heard by the launcher when the next call is answered.
    first.start(a);
    REQUIRE(first.wait([&] { return first.endings.size() == 2; }));
  }
  master second(l.address(), 1);
  REQUIRE(second.wait([&] { return second.running.has_value(); }));
  CHECK(second.endings.size() == 1);
  CHECK(second.endings[0].first.code == 3);
  CHECK(second.endings[0].second == 2);
  std::erase(*second.running, a);  // which has ended, and may not have been cleared away yet
  CHECK(*second.running == std::vector<instance>{c, b});
  second.node.post([&] { second.it.stop(b, 0ms); });
  REQUIRE(second.wait([&] { return second.endings.size() == 2; }));
  CHECK(second.endings[1].first.who == b);
  CHECK(second.endings[1].first.asked);
  second.it.stop_all(0ms);
  REQUIRE(second.wait([&] { return second.endings.size() == 3; }));
  CHECK(second.endings[2].first.who == c);
}

TEST_CASE("the end of a master is the launcher's owner's business") {
  edl::net::node node(options());
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ending> ends;
  launcher l(node, "/bin/sh", {"sh", "-c", "eval \"$SCRIPT\""}, [&](ending const& e) {
    std::lock_guard const lock(mutex);
    ends.push_back(e);
    changed.notify_all();
  });
  l.start_master({{"SCRIPT", "kill -9 $$"}});
  std::unique_lock lock(mutex);
  REQUIRE(changed.wait_for(lock, 20s, [&] { return ends.size() == 1; }));
  CHECK(ends[0].signal == SIGKILL);
  CHECK(ends[0].who.what == role::master);
}
