// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/launcher.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/platform/quiet_observer.hpp"
#include "edl/base/net/blocking.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"

namespace launcher_test {

using namespace edl::platform;
using edl::process_id;
using edl::role;
using namespace std::chrono_literals;

namespace {

constexpr char const* worker_script = "[ \"$WORKER_ID\" = 0 ] && exit 3; exec sleep 100";

struct own_directory {
  own_directory() { REQUIRE(::mkdtemp(path.data())); }
  ~own_directory() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/edl-test-XXXXXX";
};

edl::net::node_options options(edl::logger log = edl::logger(edl::severity::critical)) {
  return {.job = "j", .secret = edl::net::token("a secret of some length"), .log = std::move(log)};
}

struct kept_lines final : edl::line_sink {
  std::string text;
  void write(std::string_view lines) override { text += lines; }
};

/// What a master has been told, with its own connection to the launcher.
struct master : quiet_observer {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<ending, std::uint64_t>> endings;
  std::optional<std::vector<process_id>> running;
  std::shared_ptr<kept_lines> said = std::make_shared<kept_lines>();  // read when the node has stopped
  edl::net::node node{options(edl::logger(edl::severity::info, "", {.fd = -1, .to = said}))};
  launched it;

  master(launcher const& of, std::uint64_t seen, environment common = {{"WORKER_NUM", "2"}})
      : it(node, of.address(), of.credential(), std::move(common), seen, *this) {}
  ~master() { node.stop(); }

  void ended(ending const& e, std::uint64_t number) override {
    std::lock_guard const lock(mutex);
    endings.emplace_back(e, number);
    changed.notify_all();
  }
  void found(findings const& f) override {
    std::lock_guard const lock(mutex);
    running = f.running;
    changed.notify_all();
  }

  bool wait(auto condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, condition);
  }
  void start(process_id who) {
    node.post([=, this] { it.start(who, std::nullopt); });
  }
};

}  // namespace

TEST_CASE("processes outlive the master that had them started; the next one hears what it missed, once") {
  edl::net::node node(options());
  own_directory const place;
  launcher l(node, place.path, "/bin/sh", {"sh", "-c", worker_script}, [](ending const&) {});
  process_id const a{role::worker, 0}, b{role::worker, 1}, c{role::server, 0};
  {
    master first(l, 0);
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
  master second(l, 1);
  REQUIRE(second.wait([&] { return second.running.has_value(); }));
  CHECK(second.endings.size() == 1);
  CHECK(second.endings[0].first.code == 3);
  CHECK(second.endings[0].second == 2);
  std::erase(*second.running, a);  // which has ended, and may not have been cleared away yet
  CHECK(*second.running == std::vector<process_id>{c, b});
  second.node.post([&] { second.it.stop(b, 0ms); });
  REQUIRE(second.wait([&] { return second.endings.size() == 2; }));
  CHECK(second.endings[1].first.who == b);
  CHECK(second.endings[1].first.stop_requested);
  second.it.stop_all(0ms);
  REQUIRE(second.wait([&] { return second.endings.size() == 3; }));
  CHECK(second.endings[2].first.who == c);
}

TEST_CASE("a master hears what a process said at last") {
  edl::net::node node(options());
  own_directory const place;
  line_reader said([](std::string_view) {});
  launcher l(
      node, place.path, "/bin/sh", {"sh", "-c", "echo 'no data' >&2; exit 3"}, [](ending const&) {}, &said);
  master m(l, 0);
  m.start({role::worker, 0});
  REQUIRE(m.wait([&] { return m.endings.size() == 1; }));
  CHECK(describe(m.endings[0].first) == "exited with code 3: no data");
}

TEST_CASE("the end of a master is the launcher's owner's business") {
  edl::net::node node(options());
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ending> ends;
  own_directory const place;
  launcher l(node, place.path, "/bin/sh", {"sh", "-c", "eval \"$SCRIPT\""}, [&](ending const& e) {
    std::lock_guard const lock(mutex);
    ends.push_back(e);
    changed.notify_all();
  });
  l.start_master({{"SCRIPT", "kill -9 $$"}});
  std::unique_lock lock(mutex);
  REQUIRE(changed.wait_for(lock, 20s, [&] { return ends.size() == 1; }));
  CHECK(ends[0].signal == SIGKILL);
  CHECK(ends[0].who.role == role::master);
}

TEST_CASE("a launcher obeys nobody who knows the job's token alone") {
  edl::net::node node(options());
  own_directory const place;
  launcher l(node, place.path, "/bin/sh", {"sh", "-c", worker_script}, [](ending const&) {});
  edl::net::node member(options());
  edl::net::channel to(member, {edl::net::parse_address(l.address())}, "the launcher");
  edl::wire::StartProcess m;
  m.mutable_who()->set_role(std::uint32_t(role::worker));
  try {
    edl::net::wait(
        to, {.method = edl::wire::method::start_process, .message = edl::wire::pack(m), .timeout = 5s});
    FAIL("it obeyed");
  } catch (edl::net::call_error const& e) {
    CHECK(e.code() == edl::net::status::unavailable);
  }
}

TEST_CASE("a launcher sets no variable but those of a job, and starts no master for others") {
  edl::net::node node(options());
  own_directory const place;
  launcher l(node, place.path, "/bin/sh", {"sh", "-c", worker_script}, [](ending const&) {});
  edl::net::node other(options());
  edl::net::channel to(other, {edl::net::parse_address(l.address())}, "the launcher", &l.credential());
  auto const refused = [&](edl::wire::StartProcess const& m) -> std::string {
    try {
      edl::net::wait(
          to, {.method = edl::wire::method::start_process, .message = edl::wire::pack(m), .timeout = 20s});
      return {};
    } catch (edl::net::call_error const& e) {
      CHECK(e.code() == edl::net::status::invalid);
      return e.what();
    }
  };
  for (char const* name : {"LD_PRELOAD", "PATH", "EDL_LAUNCHER_TOKEN", "EDL_ROLE", "WORKER_ID", ""}) {
    edl::wire::StartProcess m;
    m.mutable_who()->set_role(std::uint32_t(role::worker));
    auto& v = *m.add_variables();
    v.set_name(name);
    v.set_value("x");
    CHECK(refused(m).find("sets no variable '" + std::string(name) + "'") != std::string::npos);
  }
  edl::wire::StartProcess master;
  master.mutable_who()->set_role(std::uint32_t(role::master));
  CHECK(refused(master).find("no master") != std::string::npos);
}

TEST_CASE("a start that is asked for again, for want of an answer, starts nothing twice") {
  edl::net::node node(options());
  own_directory const place;
  launcher l(node, place.path, "/bin/sh", {"sh", "-c", worker_script}, [](ending const&) {});
  edl::net::node other(options());
  edl::net::channel to(other, {edl::net::parse_address(l.address())}, "the launcher", &l.credential());
  edl::wire::StartProcess m;  // worker 0 ends at once
  m.mutable_who()->set_role(std::uint32_t(role::worker));
  auto const start = [&](std::uint64_t order) {
    m.set_order(order);
    edl::net::wait(to, {.method = edl::wire::method::start_process, .message = edl::wire::pack(m)});
  };
  for (int i = 0; i < 3; ++i) {
    start(7);
    master seen(l, 0);
    REQUIRE(seen.wait([&] { return seen.endings.size() == 1; }));
  }
  master seen(l, 0);
  REQUIRE(seen.wait([&] { return seen.endings.size() == 1; }));
  start(8);
  REQUIRE(seen.wait([&] { return seen.endings.size() == 2; }));
}

TEST_CASE("an end of who has been started since is no news, to the master that did it and to the next") {
  edl::net::node node(options());
  own_directory const place;
  // The first one waits, and the third stays.
  std::string const count = place.path + "/count", go = place.path + "/go";
  launcher l(node, place.path, "/bin/sh",
             {"sh", "-c",
              "echo >>" + count + "; case $(wc -l <" + count + ") in 1) until [ -e " + go +
                  " ]; do sleep 0.01; done;; 3) exec sleep 100;; esac; exit 3"},
             [](ending const&) {});
  process_id const who{role::worker, 0};
  std::shared_ptr<kept_lines> said;
  // An end that nobody need do anything about is no secret.
  auto const times_told = [&] {
    std::string const line = "worker-0 exited with code 3; its successor had been requested by then\n";
    std::size_t n = 0;
    for (auto at = said->text.find(line); at != std::string::npos; at = said->text.find(line, at + 1)) ++n;
    return n;
  };
  {
    master first(l, 0);
    said = first.said;
    first.start(who);
    while (!std::filesystem::exists(count)) std::this_thread::yield();
    first.node.post([&] {
      first.it.start(who, std::nullopt);
      std::ofstream{go};
    });
    REQUIRE(first.wait([&] { return !first.endings.empty(); }));
    CHECK(first.endings[0].second == 2);
  }
  CHECK(times_told() == 1);
  master second(l, 0);  // by an older journal
  REQUIRE(second.wait([&] { return second.running.has_value(); }));
  CHECK(second.running->empty());
  REQUIRE(second.endings.size() == 1);
  CHECK(second.endings[0].second == 2);
  second.start(who);
  for (bool runs = false; !runs;) {
    master third(l, 0);
    REQUIRE(third.wait([&] { return third.running.has_value(); }));
    runs = !third.running->empty();
    if (!runs) continue;  // the order is on its way
    CHECK(*third.running == std::vector<process_id>{who});
    CHECK(third.endings.empty());
  }
}

}  // namespace launcher_test
