// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/step_log.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <set>
#include <thread>

#include "base/net/peers.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"

namespace step_log_test {

using namespace peers;
using edl::replica::step_log;

namespace {

/// A worker with a log of steps of two numbers, and those who follow it. A world waits for two at most.
struct followed {
  edl::net::node node{options()};
  step_log log{node.executor(), {.name = "worker 0", .step_bytes = 1 << 20, .most_bytes = 0}};
  edl::net::listener listener{node, {any_port()}, [this](edl::net::request& r) { return log.handle(r); }};
  edl::net::node others{options()};
  edl::net::channel to{others, listener.addresses(), "worker-0"};
  std::vector<float> sums = std::vector<float>(2);

  void on_node(std::function<void()> const& work) {
    std::promise<void> done;
    node.post([&] { work(), done.set_value(); });
    done.get_future().get();
  }
  void begin(std::uint64_t world, std::uint64_t version) {
    on_node([&] { log.begin(world, version); });
  }
  /// Version v is made by minibatch v, and its sums are v and −v.
  void make(std::uint64_t version, bool last = false) {
    edl::contribution const c{{{1, 2}, std::uint32_t(version), 100}, 8, 3};
    on_node([&] {
      log.add({.world = 7,
               .version = version,
               .last = last,
               .minibatches = {c},
               .sums = {float(version), -float(version)}});
    });
  }

  edl::wire::FollowReply ask(edl::wire::FollowRequest const& what, bool begins) {
    edl::net::outgoing call{
        .method = edl::wire::method::follow, .message = edl::wire::pack(what), .timeout = 10s};
    if (!begins) call.into.push_back(std::as_writable_bytes(std::span(sums)));
    return edl::wire::unpack<edl::wire::FollowReply>(edl::net::wait(to, std::move(call)).message, "it");
  }
  edl::wire::FollowReply follow(std::uint32_t worker) {
    edl::wire::FollowRequest r;
    r.set_worker(worker);
    r.set_begin(true);
    return ask(r, true);
  }
  edl::wire::FollowReply next(std::uint32_t worker, std::uint64_t version) {
    edl::wire::FollowRequest r;
    r.set_worker(worker);
    r.set_version(version);
    return ask(r, false);
  }
  status refusal(std::function<void()> const& call) {
    try {
      call();
      return status::ok;
    } catch (edl::net::call_error const& e) {
      return e.code();
    }
  }
};

}  // namespace

TEST_CASE("who follows gets each step since, as it was made, and the last one brings it") {
  followed f;
  f.begin(7, 40);
  f.make(41);
  CHECK_FALSE(f.log.wanted());
  auto const begun = f.follow(5);
  CHECK(begun.generation() == 7);
  CHECK(begun.version() == 41);
  CHECK(f.log.wanted());
  for (std::uint64_t v = 42; v <= 46; ++v) f.make(v);
  CHECK_FALSE(f.log.wants_end());
  for (std::uint64_t v = 42; v <= 46; ++v) {
    auto const got = f.next(5, v - 1);
    CHECK(got.version() == v);
    CHECK(got.generation() == 7);
    CHECK_FALSE(got.last());
    REQUIRE(got.minibatches_size() == 1);
    auto const& m = got.minibatches(0);
    CHECK(m.task().epoch() == 1);
    CHECK(m.task().index() == 2);
    CHECK(m.minibatch() == v);
    CHECK(m.minibatches() == 100);
    CHECK(m.records() == 8);
    CHECK(m.skipped() == 3);
    CHECK(f.sums == std::vector<float>{float(v), -float(v)});
  }
  CHECK(f.log.wants_end());  // the last of them was the newest
  f.make(47, true);
  f.on_node([&] { CHECK(f.log.brought() == std::set<std::uint32_t>{5}); });
  CHECK_FALSE(f.log.wants_end());
  CHECK(f.next(5, 46).last());
  f.begin(8, 47);
  CHECK_FALSE(f.log.wanted());
  CHECK(f.refusal([&] { f.next(5, 47); }) == status::invalid);
}

TEST_CASE("a step that is asked for before it is made is told when it is") {
  followed f;
  f.begin(7, 3);
  f.follow(1);
  std::thread member([&] {
    while (!f.log.wants_end()) std::this_thread::yield();
    f.make(4, true);
  });
  auto const got = f.next(1, 3);
  member.join();
  CHECK(got.version() == 4);
  CHECK(got.last());
}

TEST_CASE("a world that ends for one brings no other that is far behind") {
  followed f;
  f.on_node([&] { CHECK(f.log.brought().empty()); });
  f.begin(7, 0);
  f.follow(1), f.follow(2);
  for (std::uint64_t v = 1; v <= 5; ++v) f.make(v);
  CHECK(f.next(1, 4).version() == 5);
  f.make(6, true);
  CHECK_FALSE(f.next(2, 5).last());
  CHECK(f.next(1, 5).last());
  f.begin(8, 6);
  f.make(7);
  CHECK(f.next(2, 6).version() == 7);  // it follows into the next world
}

TEST_CASE("who is too slow, or follows a copy that was replaced, is told so") {
  followed f;
  f.begin(7, 0);
  f.follow(1);
  for (std::uint64_t v = 1; v <= 9; ++v) f.make(v);
  CHECK_FALSE(f.log.wanted());
  CHECK(f.refusal([&] { f.next(1, 0); }) == status::invalid);
  f.follow(1);
  f.begin(8, 12);
  CHECK(f.refusal([&] { f.next(1, 9); }) == status::invalid);
  f.begin(0, 0);
  CHECK(f.refusal([&] { f.follow(1); }) == status::invalid);
}

}  // namespace step_log_test
