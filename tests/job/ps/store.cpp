// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/store.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "edl/compute/optim/decay.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "job/ps/small_store.hpp"

namespace store_test {

using namespace small_store;

TEST_CASE("initial values come of the seed, for the store's own range") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {2, 5}, .rule = momentum, .when = at_once});
  s.configure([](std::size_t first, std::span<float> into) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = float(first + i);
  });
  CHECK(values(s.current()) == std::vector<float>{2, 3, 4});
  CHECK(s.parameters() == 2);
  CHECK(s.state() == 1);
  CHECK(s.version() == 0);
  auto const full = s.full_snapshot();
  CHECK(full.slot_names == std::vector<std::string>{"momentum", "count"});
  CHECK(full.slots.values()[1] == 0.125f);
  CHECK(full.slots.values()[full.slot_stride] == 0);
}

TEST_CASE("asynchronous: each push is a step, a repeat is none") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  auto r = s.push(batch(7, 0, 2), 0, ones, twos);
  CHECK(r.outcome == push_outcome::applied);
  CHECK(r.version == 1);
  CHECK(values(s.current()) == std::vector<float>{1, 1, 1, 1, 2, 2});
  r = s.push(batch(7, 0, 2), 0, ones, twos);
  CHECK(r.outcome == push_outcome::repeat);
  CHECK(r.version == 1);
  CHECK(s.segments().position({0, 7}).applied == 1);
  CHECK(s.push(batch(7, 1, 2), 0, ones, twos).version == 2);
  CHECK(s.segments().position({0, 7}).closed);
  CHECK(s.push(batch(7, 1, 2), 0, ones, twos).outcome == push_outcome::repeat);
  CHECK(s.segments().position({0, 8}).applied == 0);
  CHECK_FALSE(s.segments().position({0, 8}).closed);
  CHECK(values(s.current()) == std::vector<float>{2, 2, 2, 2, 4, 4});
}

TEST_CASE("asynchronous with modulation: older gradients weigh less") {
  auto const layout = small_layout();
  asynchronous const modulated(true);
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = modulated});
  for (std::uint32_t i = 0; i < 4; ++i) s.push(batch(i), i, ones, twos);
  CHECK(s.current()[0] == 4);
  s.push(batch(4), 0, ones, twos);
  CHECK(s.current()[0] == 4.25f);
  CHECK(s.current()[4] == 10);  // what is carried is no gradient
}

TEST_CASE("a round: its minibatches are one step, and each counts once, as a version") {
  auto const layout = small_layout();
  rounds const each(4, 1, 0);  // SGD, with the rate 1
  store s({.layout = layout,
           .elements = {0, 6},
           .rule = *each.rule(),
           .when = each,
           .evaluation_steps = 2,
           .most_frozen = 3});
  std::vector<contribution> const first{{batch(0, 0, 3), 4}, {batch(0, 1, 3), 4}, {batch(5), 2}},
      second{{batch(0, 1, 3), 4}, {batch(0, 2, 3), 12}};
  auto r = s.push(first, 0, ones, twos);
  CHECK(r.version == 3);
  CHECK_FALSE(r.evaluate);
  // It has passed version 2 by, which others may have reached.
  REQUIRE(r.passed.size() == 1);
  CHECK(r.passed[0].version == 2);
  CHECK(r.passed[0].evaluate);
  std::vector<float> const once{-1, -1, -1, -1, 2, 2};
  CHECK(values(s.current()) == once);
  CHECK(values(s.frozen().evaluation(2).variables()) == once);
  CHECK(s.push(first, 0, ones, twos).outcome == push_outcome::repeat);
  CHECK(s.segments().position({0, 0}).applied == 2);
  CHECK(s.segments().position({0, 5}).closed);
  // Another worker has trained a part of it before: 12 of 16 records are left.
  r = s.push(second, 3, ones, twos);
  CHECK(r.outcome == push_outcome::applied);
  CHECK(r.version == 4);
  CHECK(r.evaluate);
  CHECK(r.passed.empty());
  CHECK(values(s.current()) == std::vector<float>{-1.75, -1.75, -1.75, -1.75, 3.5, 3.5});
  CHECK(s.segments().position({0, 0}).closed);
  auto const t = s.segments().counted().tallies().at(0);
  CHECK(t.minibatches == 4);
  CHECK(t.records == 22);
  // Nothing of these is counted.
  std::vector<contribution> const gap{batch(7, 0, 3), batch(7, 2, 3)}, twice{batch(8, 0, 2), batch(8, 0, 2)};
  CHECK_THROWS_AS(s.push(gap, 2, ones, twos), edl::error);
  CHECK_THROWS_AS(s.push(twice, 2, ones, twos), edl::error);
  CHECK_THROWS_AS(s.push(std::span<contribution const>(), 2, ones, twos), edl::error);
  CHECK(s.segments().position({0, 7}).applied == 0);
  synchronous const group(2);
  store mean({.layout = layout, .elements = {0, 6}, .rule = adding, .when = group});
  CHECK_THROWS_AS(mean.push(first, 0, ones, twos), edl::error);
}

TEST_CASE("stores that have rounds in other divisions come to the same version") {
  auto const layout = small_layout();
  rounds const each(4, 1, 0.9f);
  store a({.layout = layout, .elements = {0, 3}, .rule = *each.rule(), .when = each}),
      b({.layout = layout, .elements = {3, 6}, .rule = *each.rule(), .when = each});
  std::vector<float> const three(3, 1), one(1, 1), two(2, 1);
  std::vector<contribution> const lost{batch(0, 0, 4), batch(0, 1, 4)}, again{batch(1), batch(0, 0, 4)},
      rest{batch(0, 1, 4), batch(0, 2, 4), batch(0, 3, 4)};
  a.push(lost, 0, three, {});  // its worker ended before it reached the other
  for (auto const& round : {again, rest}) a.push(round, 2, three, {}), b.push(round, 2, one, two);
  CHECK(a.version() == 5);
  CHECK(b.version() == 5);
  CHECK(a.segments().counted() == b.segments().counted());
}

TEST_CASE("an average over rounds has each of the first ones in equal parts") {
  auto const layout = small_layout();
  rounds const each(2, 1, 0);
  store s(
      {.layout = layout, .elements = {0, 6}, .rule = *each.rule(), .when = each, .moving_average = 0.999});
  std::uint32_t task = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<contribution> const both{batch(task), batch(task + 1)};
    s.push(both, task, ones, twos);
    task += 2;
  }
  CHECK(s.current()[0] == -2);
  CHECK(s.averaged().variables()[0] == doctest::Approx(-1.5).epsilon(1e-3));
}

TEST_CASE("a round that n minibatches overtook counts for less, and takes part in the momentum") {
  auto const layout = small_layout();
  rounds const each(2, 0.5f, 0.5f);
  store s({.layout = layout, .elements = {0, 6}, .rule = *each.rule(), .when = each});
  std::vector<contribution> const first{batch(0), batch(1)}, second{batch(2), batch(3)};
  s.push(first, 0, ones, twos);
  CHECK(s.current()[0] == -0.75f);  // 0.5 · (1 + 0.5 · 1)
  CHECK(s.current()[4] == 2);
  s.push(second, 0, ones, twos);
  CHECK(s.current()[0] == -0.75f - 0.25f * (1 + 0.5f * 1.5f));
  CHECK(s.current()[4] == 3);
  CHECK(s.full_snapshot().slot_names == std::vector<std::string>{"momentum"});
}

TEST_CASE("synchronous: the mean of a group is a step") {
  auto const layout = small_layout();
  synchronous const group(2, 1);
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = group});
  std::vector<float> const threes(4, 3), fours(2, 4);
  CHECK(s.push(batch(0), 0, ones, twos).version == 0);
  CHECK(values(s.current()) == std::vector<float>(6, 0));
  CHECK(s.segments().position({0, 0}).closed);  // counted: it is not to be sent again
  CHECK(s.push(batch(0), 0, ones, twos).outcome == push_outcome::repeat);
  CHECK(s.push(batch(1), 0, threes, fours).version == 1);
  CHECK(values(s.current()) == std::vector<float>{2, 2, 2, 2, 3, 3});
  s.push(batch(2), 1, ones, twos);
  s.push(batch(3), 1, ones, twos);
  CHECK(s.version() == 2);
  auto const r = s.push(batch(4), 0, ones, twos);
  CHECK(r.outcome == push_outcome::stale);
  CHECK(r.version == 2);
  CHECK_FALSE(s.segments().position({0, 4}).closed);
  CHECK(s.push(batch(3), 0, ones, twos).outcome == push_outcome::repeat);  // old, but counted
  CHECK(s.push(batch(4), 1, ones, twos).outcome == push_outcome::applied);
  CHECK(s.flush().version == 3);
  CHECK(values(s.current()) == std::vector<float>{4, 4, 4, 4, 7, 7});
  CHECK(s.flush().version == 3);  // nothing waits
}

TEST_CASE("what is accumulated is neither in the variables nor in the ledger of a snapshot") {
  auto const layout = small_layout();
  synchronous const group(2);
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = group});
  s.push(batch(0, 0, 3), 0, ones, twos);
  s.push(batch(0, 1, 3), 0, ones, twos);
  s.push(batch(0, 2, 3), 1, ones, twos);
  CHECK(s.segments().position({0, 0}).closed);
  auto const full = s.full_snapshot();
  CHECK(full.version() == 1);
  CHECK(full.variables.variables()[0] == 1);
  CHECK_FALSE(full.ledger().closed({0, 0}));
  CHECK(full.ledger().position({0, 0}) == 2);
  s.flush();
  CHECK(s.full_snapshot().ledger().closed({0, 0}));
}

TEST_CASE("what is accumulated and dropped may come again, and a copy made meanwhile goes on alike") {
  auto const layout = small_layout();
  synchronous const group(2);
  store_options const o{.layout = layout, .elements = {0, 6}, .rule = adding, .when = group};
  store s(o), copy(o);
  s.configure([](std::size_t, std::span<float> into) { std::ranges::fill(into, 0.0f); });
  s.push({batch(0, 0, 2), 1, 0}, 0, ones, twos);
  auto const full = s.full_snapshot();
  std::vector<float> state = values(full.variables.variables());
  state.insert(state.end(), full.slots.values().begin(), full.slots.values().end());
  copy.restore(full.segments, {}, state);
  s.drop_waiting();
  CHECK(s.segments().counted() == copy.segments().counted());
  for (std::uint32_t i = 0; i < 2; ++i)
    for (store* one : {&s, &copy})
      CHECK(one->push({batch(0, i, 2), 1, 0}, 0, ones, twos).outcome == push_outcome::applied);
  CHECK(s.version() == 1);
  CHECK(values(s.current()) == values(copy.current()));
}

TEST_CASE("pushes that make no sense change nothing") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  CHECK(contains(complaint([&] { s.push(batch(5, 1, 3), 0, ones, twos); }),
                 "minibatch 1 of 3 of task 5 in epoch 0"));
  CHECK(contains(complaint([&] { s.push(batch(5, 3, 3), 0, ones, twos); }), "no such minibatch"));
  CHECK(contains(complaint([&] { s.push(batch(5, 0, 0), 0, ones, twos); }), "no such minibatch"));
  CHECK(contains(complaint([&] { s.push(batch(5), 0, twos, twos); }), "this server keeps 4 and 2"));
  CHECK(contains(complaint([&] { s.push(batch(5), 0, ones, ones); }), "this server keeps 4 and 2"));
  CHECK(s.version() == 0);
  CHECK(values(s.current()) == std::vector<float>(6, 0));
  CHECK(s.full_snapshot().ledger() == edl::ledger{});
  CHECK(contains(
      complaint([&] { store({.layout = layout, .elements = {0, 7}, .rule = adding, .when = at_once}); }),
      "not in a model of 6"));
}

TEST_CASE("a snapshot stays what it was") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  s.push(batch(0), 0, ones, twos);
  auto const one = s.snapshot();
  auto const before = values(one.variables());
  auto const whole = s.full_snapshot();
  auto const slots = values(whole.slots.values());
  for (std::uint32_t i = 1; i < 10; ++i) s.push(batch(i), i, ones, twos);
  CHECK(one.version() == 1);
  CHECK(values(one.variables()) == before);
  CHECK(values(whole.slots.values()) == slots);
  CHECK(values(s.current()) != before);
  CHECK(s.buffers() == 2);
}

TEST_CASE("a store freezes by itself") {
  auto const layout = small_layout();
  store s({.layout = layout,
           .elements = {0, 6},
           .rule = adding,
           .when = at_once,
           .evaluation_steps = 2,
           .checkpoint_steps = 3,
           .most_frozen = 2});
  std::vector<std::uint64_t> evaluations, checkpoints;
  for (std::uint32_t i = 0; i < 7; ++i) {
    auto const r = s.push(batch(i), i, ones, twos);
    if (r.evaluate) evaluations.push_back(r.version);
    if (r.checkpoint) checkpoints.push_back(r.version);
    CHECK_FALSE(s.push(batch(i), i, ones, twos).evaluate);
  }
  CHECK(evaluations == std::vector<std::uint64_t>{2, 4, 6});
  CHECK(checkpoints == std::vector<std::uint64_t>{3, 6});
  CHECK(contains(complaint([&] { s.frozen().evaluation(2); }),
                 "version 2 is not frozen for an evaluation"));  // gave way
  CHECK(s.frozen().evaluation(4).variables()[0] == 4);
  CHECK(s.frozen().evaluation(6).version() == 6);
  s.push(batch(7), 7, ones, twos);
  CHECK(contains(complaint([&] { s.frozen().evaluation(8); }), "version 8"));  // two are under way
  auto const third = s.frozen().checkpoint(3);
  CHECK(third.ledger().closed().at(0).count() == 3);
  CHECK(third.variables.variables()[0] == 3);
  s.frozen().release_checkpoint(3);
  s.frozen().release_evaluation(4);
  CHECK(contains(complaint([&] { s.frozen().checkpoint(3); }), "version 3 is not frozen for a checkpoint"));
  CHECK(contains(complaint([&] { s.frozen().evaluation(4); }), "version 4"));
  s.configure([](std::size_t, std::span<float>) {});
  CHECK(contains(complaint([&] { s.frozen().evaluation(6); }), "version 6"));
}

TEST_CASE("stores that had applied different minibatches become one store that counts each once") {
  scratch const dir;
  // Two cache lines of parameters, so that there are two ranges.
  edl::parameter_layout const layout{{{"w", {32}, 0}}, 32, 0};
  std::vector<float> const half(16, 1), whole(32, 1);
  store a({.layout = layout, .elements = {0, 16}, .rule = adding, .when = at_once});
  store b({.layout = layout, .elements = {16, 32}, .rule = adding, .when = at_once});
  a.push(batch(0, 0, 2), 0, half, {}), a.push(batch(0, 1, 2), 0, half, {});
  b.push(batch(0, 0, 2), 0, half, {}), b.push(batch(1), 0, half, {});
  auto const path = save(dir, layout, 2, {a.full_snapshot(), b.full_snapshot()});

  store s({.layout = layout, .elements = {0, 32}, .rule = adding, .when = at_once});
  s.restore(path);
  CHECK(s.version() == 2);
  CHECK(s.segments().size() == 2);
  CHECK(s.segments().position({0, 0}).applied == 1);
  CHECK_FALSE(s.segments().position({0, 0}).closed);
  CHECK_FALSE(s.segments().position({0, 1}).closed);
  CHECK(contains(complaint([&] { s.push(batch(2, 1, 2), 2, whole, {}); }), "has not arrived"));
  CHECK(s.push(batch(0, 0, 2), 2, whole, {}).outcome == push_outcome::repeat);
  auto r = s.push(batch(0, 1, 2), 2, whole, {});
  CHECK(r.outcome == push_outcome::applied);
  CHECK(r.version == 2);  // half of it is still to come
  CHECK(s.segments().size() == 2);
  r = s.push(batch(1), 2, whole, {});
  CHECK(r.version == 3);
  CHECK(s.segments().size() == 1);
  CHECK(values(s.current()) == std::vector<float>(32, 3));

  // The same files under another job: its ledger means nothing there.
  s.restore(path, history::forgotten);
  CHECK(s.version() == 2);
  CHECK(s.segments().size() == 1);
  CHECK(s.push(batch(0, 0, 2), 2, whole, {}).outcome == push_outcome::applied);
  CHECK(s.version() == 3);
}

TEST_CASE("a store that cannot be restored stays as it was") {
  scratch const dir;
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  s.push(batch(0), 0, ones, twos);
  auto const before = values(s.current());
  CHECK(contains(complaint([&] { s.restore(dir / "version-1"); }), "manifest.json"));
  store other({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  auto const path = save(dir, layout, 0, {other.full_snapshot()});
  CHECK(contains(complaint([&] { s.restore(path); }), "slots/momentum/w"));
  CHECK_THROWS_AS(s.configure([](std::size_t, std::span<float>) { throw edl::error("no"); }), edl::error);
  CHECK(values(s.current()) == before);
  CHECK(s.version() == 1);
  CHECK(s.push(batch(0), 0, ones, twos).outcome == push_outcome::repeat);
}

TEST_CASE("a store without elements keeps the ledger, and a checkpoint of it can be read") {
  scratch const dir;
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {6, 6}, .rule = momentum, .when = at_once});
  store rest({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  CHECK(s.push(batch(0), 0, {}, {}).version == 1);
  CHECK(s.push(batch(0), 0, {}, {}).outcome == push_outcome::repeat);
  rest.push(batch(0), 0, ones, twos);
  auto const path = save(dir, layout, 1, {rest.full_snapshot(), s.full_snapshot()});
  store again({.layout = layout, .elements = {6, 6}, .rule = momentum, .when = at_once});
  again.restore(path);
  CHECK(again.version() == 1);
  CHECK(again.segments().position({0, 0}).closed);
}

TEST_CASE("a range of carried state alone") {
  auto const layout = small_layout();
  synchronous const group(2);
  store s({.layout = layout, .elements = {5, 6}, .rule = momentum, .when = group});
  std::vector<float> const one{1}, three{3};
  s.push(batch(0), 0, {}, one);
  s.push(batch(1), 0, {}, three);
  CHECK(values(s.current()) == std::vector<float>{2});
  CHECK(s.version() == 1);
}

TEST_CASE("parts have their rates in whatever range a store keeps, and under an average") {
  edl::parameter_layout const layout{
      {{"dense/kernel", {5, 4}, 0}, {"dense/bias", {4}, 20}, {"out/kernel", {4, 2}, 24}, {"mean", {2}, 32}},
      32,
      2};
  edl::rule const rule(edl::sgd{}, edl::constant_rate{0.5f});
  edl::rates const parts{{"*bias", 2}, {"out*", 0.5f}};
  auto const trained = [&](std::vector<std::size_t> const& edges, double average) {
    std::vector<float> all;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      store s({.layout = layout,
               .elements = {edges[i], edges[i + 1]},
               .rule = rule,
               .when = at_once,
               .moving_average = average,
               .rates = edl::rates_of_parts(layout, parts, "")});
      s.configure([](std::size_t, std::span<float> into) { std::ranges::fill(into, 4.0f); });
      s.push(batch(0), 0, std::vector<float>(s.parameters(), 1), std::vector<float>(s.state(), 1));
      auto const now = values(s.current());
      all.insert(all.end(), now.begin(), now.end());
    }
    return all;
  };
  std::vector<float> expected(34, 3.5f);
  std::fill_n(expected.begin() + 20, 4, 3.0f);
  std::fill_n(expected.begin() + 24, 8, 3.75f);
  std::fill_n(expected.begin() + 32, 2, 5.0f);
  for (double const average : {0.0, 0.5}) {
    CHECK(trained({0, 34}, average) == expected);
    CHECK(trained({0, 16, 32, 34}, average) == expected);
    CHECK(trained({0, 21, 23, 34}, average) == expected);
  }
}

TEST_CASE("biases are spared in whatever range a store keeps") {
  edl::parameter_layout const layout{
      {{"dense/kernel", {5, 4}, 0}, {"dense/bias", {4}, 20}, {"out/kernel", {4, 2}, 24}, {"mean", {2}, 32}},
      32,
      2};
  edl::rule const rule(edl::sgd{.weight_decay = 0.5f, .decay_biases = false}, edl::constant_rate{0.5f},
                       layout);
  auto const trained = [&](std::vector<std::size_t> const& edges) {
    std::vector<float> all;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      store s({.layout = layout, .elements = {edges[i], edges[i + 1]}, .rule = rule, .when = at_once});
      s.configure([](std::size_t, std::span<float> into) { std::ranges::fill(into, 4.0f); });
      s.push(batch(0), 0, std::vector<float>(s.parameters(), 0), std::vector<float>(s.state(), 0));
      auto const now = values(s.current());
      all.insert(all.end(), now.begin(), now.end());
    }
    return all;
  };
  std::vector<float> expected(34, 3.0f);
  std::fill_n(expected.begin() + 20, 4, 4.0f);
  std::fill_n(expected.begin() + 32, 2, 4.0f);
  CHECK(trained({0, 34}) == expected);
  CHECK(trained({0, 16, 32, 34}) == expected);
  CHECK(trained({0, 21, 23, 34}) == expected);
}

TEST_CASE("a store whose memory has changed by itself is of no use any more") {
  auto const layout = small_layout();
  auto const spoilt = [&](std::size_t at) {
    auto s = std::make_unique<store>(store_options{
        .layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once, .watches_memory = true});
    s->push(batch(0), 0, ones, twos);
    const_cast<float&>(s->current()[at]) *= 2;
    return s;
  };
  auto const why = doctest::Contains("elements [0, 6) have changed without a step");
  for (std::size_t const at : {0, 5}) {
    auto const pushed = spoilt(at), written = spoilt(at), ended = spoilt(at);
    CHECK_THROWS_WITH_AS(pushed->push(batch(1), 1, ones, twos), why, store_failure);
    CHECK_THROWS_WITH_AS(pushed->full_snapshot(), why, store_failure);
    CHECK_THROWS_WITH_AS(written->full_snapshot(), why, store_failure);
    CHECK_THROWS_WITH_AS(ended->flush(), why, store_failure);
    pushed->configure([](std::size_t, std::span<float>) {});
    CHECK(pushed->push(batch(1), 0, ones, twos).version == 1);
  }
}

}  // namespace store_test
