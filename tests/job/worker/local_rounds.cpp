// SPDX-License-Identifier: Apache-2.0
#include "edl/job/worker/local_rounds.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/net/peers.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "job/worker/scripted_session.hpp"

namespace local_rounds_test {

using namespace scripted_session;

namespace {

struct round {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> minibatches;  // task and number
  std::uint64_t version;
  std::vector<float> values;  // gradient, change of the state
  friend bool operator==(round const&, round const&) = default;
};

/// A master and a server of the two variables of `counting_trainer`, which are 100 times the version.
struct cluster {
  std::atomic<std::uint64_t> version{3}, generation{1};
  std::atomic<bool> away{false};             // no push arrives
  std::vector<round> rounds;                 // on the node's thread, and after the session
  std::function<void()> after_push = [] {};  // before the reply
  edl::net::node node{peers::options()};
  edl::net::listener listener{node, {peers::any_port()}, [this](edl::net::request& r) { return handle(r); }};

  asio::awaitable<void> handle(edl::net::request& r) {
    if (r.method() == edl::wire::method::cluster) {
      edl::wire::Cluster now;
      now.set_ready(!away);
      now.set_generation(generation);
      now.add_ranges()->add_addresses(to_string(listener.addresses().front()));
      std::string const text = edl::wire::pack(now);
      co_await r.reply(text);
    } else if (r.method() == edl::wire::method::pull) {
      edl::wire::PullReply reply;
      reply.set_version(version);
      std::vector<float> const variables(2, 100 * float(version));
      std::string const text = edl::wire::pack(reply);
      co_await r.reply(text, std::as_bytes(std::span(variables)));
    } else {
      auto const p = edl::wire::unpack<edl::wire::PushRequest>(r.message(), r.peer());
      round one{.minibatches = {{p.task().index(), p.minibatch()}}, .version = p.version(), .values = {0, 0}};
      for (auto const& m : p.more()) one.minibatches.emplace_back(m.task().index(), m.minibatch());
      co_await r.read(std::as_writable_bytes(std::span(one.values)));
      if (p.generation() != generation)
        throw edl::net::call_error(edl::net::status::stale_generation, "another generation");
      if (away) throw edl::net::call_error(edl::net::status::not_ready, "it begins");
      rounds.push_back(one);
      ++version;
      after_push();
      std::string const text = edl::wire::pack(edl::wire::PushReply{});
      co_await r.reply(text);
    }
  }
};

/// A session of rounds of four steps, at the rate 0.5 and of gradients of 1.
struct trained : bench {
  cluster there;
  edl::net::node node{peers::options()};
  edl::net::channel to_master{node, there.listener.addresses(), "master"};
  edl::parameter_layout layout{
      .variables = {{.name = "w", .dims = {1}, .offset = 0}}, .parameters = 1, .state = 1};
  edl::worker::remote_parameters servers{node, to_master, {.id = 0, .incarnation = 1}, layout};
  edl::worker::local_rounds rounds{servers, model};

  trained() {
    options.get_model_steps = 4;
    options.rounds = true;
  }
  bool train(std::function<bool()> stop = {}) {
    edl::worker::session s(options, model, rule, {&from, &evaluated, &from}, master, rounds,
                           edl::logger(edl::severity::critical));
    s.stop_when(std::move(stop));
    return s.run();
  }
};

}  // namespace

TEST_CASE(
    "a round is pushed when its steps are made, or nothing is left to train, and tasks are reported then") {
  trained t;
  t.master.work = {t.task(0, 12), t.task(12, 24)};
  std::vector<std::size_t> reported;
  t.there.after_push = [&] { reported.push_back(t.master.outcomes.size()); };
  CHECK(t.train());
  CHECK(t.there.rounds ==
        std::vector<round>{{{{0, 0}, {0, 1}, {0, 2}, {12, 0}}, 3, {2, 4}}, {{{12, 1}, {12, 2}}, 4, {1, 2}}});
  CHECK(reported == std::vector<std::size_t>{0, 1});
  REQUIRE(t.master.outcomes.size() == 2);
  CHECK(t.master.outcomes[1].applied == 3);
}

TEST_CASE("the schedule of a worker's own steps goes on within a round, and its slots beyond it") {
  trained t;
  edl::rule const rule(edl::sgd{.momentum = 0.5f},
                       edl::warmup<edl::constant_rate>{.steps = 32, .then = {.rate = 1}});
  t.master.work = {t.task(0, 32)};
  edl::worker::session s(t.options, t.model, rule, {&t.from, &t.evaluated, &t.from}, t.master, t.rounds,
                         edl::logger(edl::severity::critical));
  CHECK(s.run());
  double momentum = 0;
  REQUIRE(t.there.rounds.size() == 2);
  for (std::uint64_t version : {3, 4}) {
    double change = 0;
    for (std::uint64_t step = version; step < version + 4; ++step)
      change += double(rule.learning_rate(step)) * (momentum = 0.5 * momentum + 1);
    CHECK(t.there.rounds[version - 3].values[0] == doctest::Approx(change).epsilon(1e-3));
  }
}

TEST_CASE("told to stop, it pushes what it has of a round, and returns the lease with that") {
  trained t;
  t.master.work = {t.task(0, 40)};
  CHECK_FALSE(t.train([&] { return t.model.steps.size() == 7; }));
  REQUIRE(t.there.rounds.size() == 2);
  CHECK(t.there.rounds[1].minibatches.size() == 3);
  REQUIRE(t.master.outcomes.size() == 1);
  CHECK(t.master.outcomes[0].returned);
  CHECK(t.master.outcomes[0].applied == 7);
}

TEST_CASE("a round that cannot be pushed before the end is not told to be applied") {
  trained t;
  t.rounds.refresh();
  t.there.away = true;
  t.rounds.stop_when([] { return true; });
  t.master.work = {t.task(0, 16), t.task(16, 40)};
  CHECK_THROWS_AS(t.train(), edl::worker::interrupted);
  CHECK(t.master.outcomes.empty());
}

TEST_CASE("an evaluation ends a round before its variables come") {
  trained t;
  auto e = t.task(0, 4, task_kind::evaluation);
  e.version = 3;
  t.master.work = {t.task(0, 12), e, t.task(12, 16)};
  CHECK(t.train());
  REQUIRE(t.there.rounds.size() == 2);
  CHECK(t.there.rounds[0] == round{{{0, 0}, {0, 1}, {0, 2}}, 3, {1.5, 3}});
  CHECK(t.there.rounds[1] == round{{{12, 0}}, 4, {0.5, 1}});
}

TEST_CASE("a pass without a loss ends a round without it, and its state goes nowhere") {
  trained t;
  struct : counting_trainer {
    double train(edl::data::batch const& b, std::uint64_t step,
                 edl::worker::gradients_ready const& ready) override {
      double const loss = counting_trainer::train(b, step, ready);
      if (!std::isfinite(loss)) arena[1] = std::numeric_limits<float>::quiet_NaN();
      not_finite = steps.size() == 2 ? 1 : 0;  // the third has none
      return loss;
    }
  } doubtful;
  edl::worker::local_rounds rounds(t.servers, doubtful);
  t.master.work = {t.task(0, 20)};
  edl::worker::session s(t.options, doubtful, t.rule, {&t.from, &t.evaluated, &t.from}, t.master, rounds,
                         edl::logger(edl::severity::critical));
  CHECK(s.run());
  CHECK(t.there.rounds ==
        std::vector<round>{{{{0, 0}, {0, 1}}, 3, {1, 2}}, {{{0, 2}, {0, 3}, {0, 4}}, 4, {1.5, 3}}});
}

TEST_CASE("a round whose steps have left the numbers goes nowhere, and the worker ends") {
  trained t;
  t.model.gradient = {std::numeric_limits<float>::infinity()};
  t.master.work = {t.task(0, 40)};
  CHECK_THROWS_WITH_AS(
      t.train(),
      "after 4 steps of its own from version 3 this worker's weights are not finite: lower the "
      "learning rate, or --outer_steps",
      edl::error);
  CHECK(t.there.rounds.empty());
}

TEST_CASE("a round of another generation is dropped, and its minibatches are trained again") {
  trained t;
  // The fourth task begins a round. Two are leased at a time.
  t.master.work = {t.task(0, 24),  t.task(24, 28), t.task(28, 32),
                   t.task(32, 36), t.task(36, 40), t.task(0, 24)};
  t.there.after_push = [&] {
    if (t.there.rounds.size() == 1) t.there.generation = 2;
  };
  CHECK(t.train());
  // The second round is refused. All is leased again.
  REQUIRE(t.there.rounds.size() == 3);
  CHECK(t.there.rounds[1].minibatches == t.there.rounds[0].minibatches);
  CHECK(t.there.rounds[2].minibatches.size() == 2);
  CHECK(t.model.steps.size() == 14);
}

TEST_CASE("a lease that fails or is handed back as its servers go back is dropped, and the worker goes on") {
  for (bool const stopped : {false, true}) {
    trained t;
    t.from = numbers_source(100, {9});
    t.master.work = {t.task(0, 12), t.task(12, 16), t.task(16, 20)};
    t.rounds.refresh();
    CHECK(t.train([&] {
      if (t.model.steps.size() == 2) t.there.generation = 2;  // its round is of the first
      return stopped && t.model.steps.size() == 2;
    }) == !stopped);
    CHECK(t.master.outcomes.size() == (stopped ? 0 : 1));
  }
}

TEST_CASE("a minibatch that is leased again within its round is in it once") {
  trained t;
  edl::data::batch none;
  std::vector<float> variables(2);
  t.rounds.pull(t.model.variables());
  edl::minibatch_key const first{{0, 0}, 0, 2}, second{{0, 0}, 1, 2};
  for (auto const& key : {first, second, first, second}) t.rounds.push(key, 3, {}, {}, {});
  CHECK(t.rounds.pending() == 2);
  t.rounds.end_round();
  CHECK(t.rounds.pending() == 0);
  REQUIRE(t.there.rounds.size() == 2);
  CHECK(t.there.rounds[0].minibatches == t.there.rounds[1].minibatches);
}

}  // namespace local_rounds_test
