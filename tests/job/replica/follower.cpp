// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/follower.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/net/peers.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/job/ps/copy.hpp"
#include "edl/job/replica/on_node.hpp"
#include "edl/job/worker/links.hpp"
#include "job/ps/small_store.hpp"

namespace follower_test {

using namespace peers;
using namespace small_store;
using edl::replica::follower;

namespace {

auto const layout = small_layout();

std::shared_ptr<store> fresh() {
  return std::make_shared<store>(
      store_options{.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
}

/// What the worker that is followed says: a copy of version 3 in world 7, and the step to version 4, the
/// last.
struct told {
  edl::wire::FollowReply begin, step;
  edl::wire::CopyReply copy;
  std::string no_begin, no_copy, no_step;  // bytes in the place of a message
  std::vector<float> values, sums;
};

struct followed {
  std::unique_ptr<edl::net::node> there = std::make_unique<edl::net::node>(options());
  edl::net::node here{options()};
  std::shared_ptr<store> truth = fresh(), own = fresh();
  told says;
  std::atomic<bool> silent{false}, refuses{false}, stopping{false};
  std::atomic<bool> asked{false};
  std::atomic<std::uint64_t> over{0};
  edl::net::event never{there->executor()};
  std::unique_ptr<edl::net::listener> listener;
  std::unique_ptr<edl::net::channel> to;

  followed() {
    for (std::uint32_t task = 0; task < 3; ++task) truth->push(batch(task), task, ones, twos);
    auto const full = truth->full_snapshot();
    says.copy = edl::wire::unpack<edl::wire::CopyReply>(describe_copy(full), "it");
    says.values = values(full.variables.variables());
    says.values.insert(says.values.end(), full.slots.values().begin(), full.slots.values().end());
    says.begin.set_generation(7);
    says.begin.set_version(3);
    says.step.set_generation(7);
    says.step.set_version(4);
    says.step.set_last(true);
    auto& m = *says.step.add_minibatches();
    m.mutable_task()->set_index(3);
    m.set_minibatches(1);
    m.set_records(8);
    says.sums = {8, 16, 24, 32, 40, 48};
    listener = std::make_unique<edl::net::listener>(*there, std::vector{any_port()},
                                                    [this](edl::net::request& r) { return handle(r); });
    to = std::make_unique<edl::net::channel>(here, listener->addresses(), "worker-1");
  }

  asio::awaitable<void> handle(edl::net::request& r) {
    auto const bytes = [](auto const& message, std::string const& none) {
      return none.empty() ? edl::wire::pack(message) : none;
    };
    if (r.method() == edl::wire::method::copy) {
      std::string const answer = bytes(says.copy, says.no_copy);
      co_await r.reply(answer, std::as_bytes(std::span(says.values)));
    } else if (edl::wire::unpack<edl::wire::FollowRequest>(r.message(), "it").begin()) {
      std::string const answer = bytes(says.begin, says.no_begin);
      co_await r.reply(answer);
    } else {
      asked = true;
      while (silent) co_await never.wait();
      if (refuses) throw edl::net::call_error(status::invalid, "worker 5 no longer follows it");
      std::string const answer = bytes(says.step, says.no_step);
      co_await r.reply(answer, std::as_bytes(std::span(says.sums)));
    }
  }

  std::optional<follower::copy> follow() {
    return follower({.node = here,
                     .store = own,
                     .worker = 5,
                     .log = edl::logger(edl::severity::critical),
                     .stopping = [this] { return stopping.load(); },
                     .over = [this] { return over.load(); },
                     .next_world_in = 20ms})
        .follow(*to, 1);
  }
};

}  // namespace

TEST_CASE("who follows has the same bits as those who made the steps") {
  followed f;
  auto const copy = f.follow();
  REQUIRE(copy);
  CHECK(copy->world == 7);
  CHECK(copy->version == 4);
  std::vector<edl::contribution> const all{{batch(3), 8, 0}};
  f.truth->step(all, f.says.sums);
  CHECK(values(f.own->current()) == values(f.truth->current()));
  CHECK(values(f.own->full_snapshot().slots.values()) == values(f.truth->full_snapshot().slots.values()));
}

TEST_CASE("who is told what cannot be enters as it is: with a whole copy, or without one") {
  struct lie {
    char const* what;
    std::function<void(told&)> tell;
    bool keeps_copy;
  };
  std::vector<lie> const lies{
      {"the answer is no message", [](told& t) { t.no_begin = "\xff\xff"; }, false},
      {"the copy is no message", [](told& t) { t.no_copy = "\xff\xff"; }, false},
      {"a copy that lacks a number", [](told& t) { t.values.pop_back(); }, false},
      {"a copy of nothing", [](told& t) { t.values.clear(); }, false},
      {"a copy that is too large", [](told& t) { t.values.resize(1 << 20); }, false},
      {"a copy of a part", [](told& t) { t.copy.mutable_segments(0)->set_last(5); }, false},
      {"a copy of more", [](told& t) { t.copy.mutable_segments(0)->set_last(7); }, false},
      {"a copy of a part twice", [](told& t) { *t.copy.add_segments() = t.copy.segments(0); }, false},
      {"a copy with rows", [](told& t) { t.copy.mutable_segments(0)->set_of_rows(true); }, false},
      {"a step that is no message", [](told& t) { t.no_step = "\xff\xff"; }, false},
      {"a step to another version", [](told& t) { t.step.set_version(9); }, false},
      {"a step without a minibatch", [](told& t) { t.step.clear_minibatches(); }, false},
      {"a step with a minibatch that is none",
       [](told& t) { t.step.mutable_minibatches(0)->set_minibatch(1); }, false},
      {"a step with one minibatch twice",
       [](told& t) { *t.step.add_minibatches() = edl::wire::FollowReply(t.step).minibatches(0); }, false},
      {"a step that it has made",
       [](told& t) { t.step.mutable_minibatches(0)->mutable_task()->set_index(2); }, false},
      {"a step that lacks sums", [](told& t) { t.sums.pop_back(); }, true},
      {"a step with too many sums", [](told& t) { t.sums.resize(1 << 20); }, true},
  };
  for (lie const& l : lies) {
    CAPTURE(l.what);
    followed f;
    l.tell(f.says);
    auto const copy = f.follow();
    CHECK(copy.has_value() == l.keeps_copy);
    if (!copy) continue;
    CHECK(copy->world == 7);
    CHECK(copy->version == 3);
    CHECK(values(f.own->current()) == values(f.truth->current()));
  }
}

TEST_CASE("who cannot follow any more keeps what it has copied") {
  for (std::string const how : {"refused", "the world is over and no step comes", "hung up"}) {
    CAPTURE(how);
    followed f;
    f.refuses = how == "refused";
    f.silent = !f.refuses;
    std::thread other([&] {
      while (!f.asked) std::this_thread::yield();
      if (how == "hung up")
        f.there->stop();
      else
        f.over = 8;
    });
    auto const copy = f.follow();
    other.join();
    REQUIRE(copy);
    CHECK(copy->version == 3);
    CHECK(values(f.own->current()) == values(f.truth->current()));
    if (how != "hung up") f.there->stop();
  }
}

TEST_CASE("who is told to stop follows no more") {
  followed f;
  f.silent = f.stopping = true;
  CHECK_THROWS_AS(f.follow(), edl::worker::interrupted);
  f.there->stop();
}

TEST_CASE("work on a node's thread returns, and throws, what it does there") {
  edl::net::node node(options());
  CHECK(edl::replica::on_node(node, [] { return 7; }) == 7);
  CHECK_THROWS_WITH_AS(edl::replica::on_node(node, [] { throw edl::error("no"); }), "no", edl::error);
  node.stop();
  CHECK_THROWS_AS(edl::replica::on_node(node, [] {}), edl::error);
}

}  // namespace follower_test
