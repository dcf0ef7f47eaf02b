// SPDX-License-Identifier: Apache-2.0
// Steps that copies of a store make together.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "job/ps/small_store.hpp"

namespace store_steps_test {

using namespace small_store;

namespace {

/// What an all-reduce gives: for every element, the sum of value × records over contributions.
std::vector<float> sums_of(std::vector<std::pair<float, edl::contribution>> const& all, std::size_t elements,
                           store const& of) {
  std::vector<float> sum(elements, 0);
  for (auto const& [value, c] : all) {
    std::vector<float> one(elements, value * float(c.records));
    auto const whole = one;
    of.segments().leave_out(c, one);
    CHECK(of.segments().not_yet_applied(c) == (one == whole));
    for (std::size_t i = 0; i < elements; ++i) sum[i] += one[i];
  }
  return sum;
}

std::vector<edl::contribution> keys_of(std::vector<std::pair<float, edl::contribution>> const& all) {
  std::vector<edl::contribution> out;
  for (auto const& [value, c] : all) out.push_back(c);
  return out;
}

bool same(edl::ps::full_snapshot const& a, edl::ps::full_snapshot const& b) {
  bool alike = values(a.variables.variables()) == values(b.variables.variables()) &&
               values(a.slots.values()) == values(b.slots.values()) && a.segments.size() == b.segments.size();
  for (std::size_t i = 0; alike && i < a.segments.size(); ++i)
    alike = a.segments[i].elements.first == b.segments[i].elements.first &&
            a.segments[i].elements.last == b.segments[i].elements.last &&
            a.segments[i].steps == b.segments[i].steps && a.segments[i].ledger == b.segments[i].ledger;
  return alike && a.version() == b.version();
}

std::vector<float> copy_of(edl::ps::full_snapshot const& c) {
  auto all = values(c.variables.variables());
  auto const slots = values(c.slots.values());
  all.insert(all.end(), slots.begin(), slots.end());
  return all;
}

}  // namespace

TEST_CASE("a step of several minibatches is one step with the mean over all their records") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  std::vector<std::pair<float, edl::contribution>> const all{
      {2.0f, {batch(0, 0, 2), 4}}, {5.0f, {batch(1), 1, 3}}, {-1.0f, {batch(2), 3}}};
  auto sums = sums_of(all, 6, s);
  auto const r = s.step(keys_of(all), sums);
  CHECK(r.outcome == push_outcome::applied);
  CHECK(r.version == 1);
  CHECK(values(s.current()) == std::vector<float>(6, (2.0f * 4 + 5.0f * 1 - 1.0f * 3) / 8));
  CHECK(s.segments().position({0, 0}).applied == 1);
  CHECK(s.segments().position({0, 1}).closed);
  CHECK(s.segments().position({0, 2}).closed);
  auto const ledger = s.full_snapshot().ledger();
  CHECK(ledger.tallies().at(0) == edl::ledger::tally{3, 8});
  CHECK(ledger.skipped().at({0, 1}) == 3);
  // By one, it is a push.
  store one({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once}),
      pushed({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  for (std::uint32_t i = 0; i < 5; ++i) {
    std::vector<float> both(6, float(i) * 8);
    edl::contribution const c{batch(i), 8};
    one.step({&c, 1}, both);
    pushed.push(c, i, std::vector<float>(4, float(i)), std::vector<float>(2, float(i)));
  }
  CHECK(same(one.full_snapshot(), pushed.full_snapshot()));
}

TEST_CASE("a step is made at the least rate of its minibatches, and none at a rate that is no factor") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  std::vector<std::pair<float, edl::contribution>> all{{2.0f, {batch(0), 4, 0, 0.5f}},
                                                       {2.0f, {batch(1), 4, 0, 0.25f}}};
  auto sums = sums_of(all, 6, s);
  s.step(keys_of(all), sums);
  CHECK(values(s.current()) == std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f, 2, 2});  // and the state as it is
  s.push({batch(2), 4, 0, 0.5f}, 1, std::vector<float>(4, 1), std::vector<float>(2, 1));
  CHECK(values(s.current()) == std::vector<float>{1, 1, 1, 1, 3, 3});
  for (float const bad : {0.0f, 2.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    all = {{2.0f, {batch(3), 4, 0, bad}}};
    sums = sums_of(all, 6, s);
    CHECK_THROWS_WITH(s.step(keys_of(all), sums), doctest::Contains("minibatch's rate is not in (0, 1]"));
    CHECK_THROWS_WITH(s.push({batch(3), 4, 0, bad}, 2, std::vector<float>(4, 1), std::vector<float>(2, 1)),
                      doctest::Contains("of its rate is not in (0, 1]"));
  }
  CHECK(s.version() == 2);
}

TEST_CASE("a step of minibatches that have all been counted is none") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  std::vector<std::pair<float, edl::contribution>> const all{{2.0f, {batch(0), 4}}, {3.0f, {batch(1), 4}}};
  auto sums = sums_of(all, 6, s);
  s.step(keys_of(all), sums);
  auto const before = s.full_snapshot();
  sums = sums_of(all, 6, s);
  CHECK(sums == std::vector<float>(6, 0));
  CHECK(s.step(keys_of(all), sums).version == 1);
  CHECK(same(before, s.full_snapshot()));
}

TEST_CASE("a step counts what is new of it, in the mean over that") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  s.push({batch(0), 4}, 0, ones, std::vector<float>(2, 1));
  std::vector<std::pair<float, edl::contribution>> const all{{9.0f, {batch(0), 4}}, {3.0f, {batch(1), 2}}};
  auto sums = sums_of(all, 6, s);
  CHECK(s.step(keys_of(all), sums).version == 2);
  CHECK(values(s.current()) == std::vector<float>(6, 4));
}

TEST_CASE("a step with elements whose histories differ counts every minibatch once for each") {
  scratch const dir;
  edl::parameter_layout const layout{{{"w", {48}, 0}}, 48, 0};
  std::vector<float> const part(16, 1);
  std::vector<edl::ps::full_snapshot> snapshots;
  // Three servers: one has task 0 and the half of 2, one the half of task 0 and task 1, one nothing.
  store a({.layout = layout, .elements = {0, 16}, .rule = adding, .when = at_once});
  store b({.layout = layout, .elements = {16, 32}, .rule = adding, .when = at_once});
  store c({.layout = layout, .elements = {32, 48}, .rule = adding, .when = at_once});
  a.push({batch(0, 0, 2), 4}, 0, part, {}), a.push({batch(0, 1, 2), 4}, 0, part, {});
  a.push({batch(2, 0, 2), 4}, 0, part, {});
  b.push({batch(0, 0, 2), 4}, 0, part, {}), b.push({batch(1), 4}, 0, part, {});
  auto const path = save(dir, layout, 3, {a.full_snapshot(), b.full_snapshot(), c.full_snapshot()});

  // Two copies make the same steps; each leaves out of its own minibatch what has it.
  store x({.layout = layout, .elements = {0, 48}, .rule = adding, .when = at_once}),
      y({.layout = layout, .elements = {0, 48}, .rule = adding, .when = at_once});
  x.restore(path), y.restore(path);
  CHECK(x.segments().size() == 3);
  std::vector<std::vector<std::pair<float, edl::contribution>>> const steps{
      {{1.0f, {batch(0, 0, 2), 4}}, {1.0f, {batch(1), 4}}},
      {{1.0f, {batch(0, 1, 2), 4}}, {1.0f, {batch(2, 0, 2), 4}}},
      {{1.0f, {batch(2, 1, 2), 4}}, {1.0f, {batch(3), 4}}}};
  for (auto const& all : steps)
    for (store* s : {&x, &y}) {
      auto sums = sums_of(all, 48, *s);
      s->step(keys_of(all), sums);
    }
  CHECK(same(x.full_snapshot(), y.full_snapshot()));
  // Every step adds the mean, which is 1, to what takes part in it: so values tell the number of steps.
  CHECK(x.current()[0] == 3 + 3 - 1);       // not in the first: it had both of it
  CHECK(x.current()[16] == 2 + 3 - 0 - 1);  // likewise
  CHECK(x.current()[32] == 3);
  for (std::uint32_t t = 0; t < 4; ++t) CHECK(x.segments().position({0, t}).closed);
  auto const after = x.full_snapshot();
  CHECK(after.ledger().open().empty());
  for (auto const& s : after.segments) CHECK(s.ledger.closed().at(0).count() == 4);
}

TEST_CASE("a copy of a store goes on bit by bit as the store does") {
  scratch const dir;
  edl::parameter_layout const layout{{{"w", {20}, 0}, {"mean", {3}, 20}}, 20, 3};
  store_options const options{.layout = layout,
                              .elements = {0, 23},
                              .rule = momentum,
                              .when = at_once,
                              .evaluation_steps = 2,
                              .checkpoint_steps = 3};
  // With two segments, whose boundary is no multiple of a line.
  store left({.layout = layout, .elements = {0, 7}, .rule = momentum, .when = at_once}),
      right({.layout = layout, .elements = {7, 23}, .rule = momentum, .when = at_once});
  left.push({batch(0), 4}, 0, std::vector<float>(7, 0.3f), {});
  left.push({batch(1, 0, 2), 4}, 0, std::vector<float>(7, 0.7f), {});
  right.push({batch(5), 2, 2}, 0, std::vector<float>(13, 0.1f), std::vector<float>(3, 1.5f));
  auto const path = save(dir, layout, 2, {left.full_snapshot(), right.full_snapshot()});
  store original(options), copied(options);
  original.restore(path);
  REQUIRE(original.segments().size() == 2);
  copied.push({batch(9), 1}, 0, std::vector<float>(20, 4), std::vector<float>(3, 4));  // to be forgotten
  copied.push({batch(10), 1}, 0, std::vector<float>(20, 4), std::vector<float>(3, 4));
  CHECK(copied.frozen().has_evaluation(2));

  auto const now = original.full_snapshot();
  auto const all = copy_of(now);
  CHECK(all.size() == original.copy_size());
  copied.restore(now.segments, {}, all);
  CHECK(same(original.full_snapshot(), copied.full_snapshot()));
  CHECK_FALSE(copied.frozen().has_evaluation(2));
  CHECK_FALSE(copied.segments().position({0, 9}).closed);
  std::vector<std::pair<float, edl::contribution>> const later[]{
      {{0.9f, {batch(0), 4}}, {0.2f, {batch(5), 2}}},
      {{0.4f, {batch(1, 0, 2), 4}}},
      {{0.6f, {batch(1, 1, 2), 3}}}};
  for (auto const& step : later) {
    auto one = sums_of(step, 23, original), other = sums_of(step, 23, copied);
    CHECK(one == other);
    auto const r = original.step(keys_of(step), one), q = copied.step(keys_of(step), other);
    CHECK(r.version == q.version);
    CHECK(r.evaluate == q.evaluate);
    CHECK(r.checkpoint == q.checkpoint);
    CHECK(same(original.full_snapshot(), copied.full_snapshot()));
  }
  // And by pushes.
  original.push({batch(7), 4}, 0, std::vector<float>(20, 0.3f), std::vector<float>(3, 0.3f));
  copied.push({batch(7), 4}, 0, std::vector<float>(20, 0.3f), std::vector<float>(3, 0.3f));
  CHECK(same(original.full_snapshot(), copied.full_snapshot()));
}

TEST_CASE("steps and copies that make no sense change nothing") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  s.push({batch(0, 0, 3), 4}, 0, ones, twos);
  auto const before = s.full_snapshot();
  auto const refuses = [&](std::vector<edl::contribution> const& all, std::size_t elements, char const* why) {
    std::vector<float> sums(elements, 1);
    CHECK(contains(complaint([&] { s.step(all, sums); }), why));
    CHECK(same(before, s.full_snapshot()));
  };
  refuses({{batch(1), 4}}, 5, "5 sums, but this store keeps 6");
  refuses({{batch(1), 4}, {batch(0, 2, 3), 4}}, 6, "minibatch 2 of 3 of task 0 in epoch 0");
  refuses({{batch(1), 4}, {batch(4, 3, 3), 4}}, 6, "minibatch 3 of 3 of task 4");
  refuses({{batch(1), 4}, {batch(2), 4}, {batch(1), 4}}, 6, "minibatch 0 of task 1 in epoch 0 twice");

  auto const good = copy_of(before);
  auto const kept = before.segments;
  auto const copies = [&](std::vector<edl::checkpoint::segment> segments, std::vector<float> const& all) {
    CHECK(contains(complaint([&] { s.restore(std::move(segments), {}, all); }), "is not a copy"));
    CHECK(same(before, s.full_snapshot()));
  };
  copies({}, good);
  copies(kept, {good.begin(), good.end() - 1});
  auto some = kept;
  some[0].elements.last = 5;
  copies(some, good);
  some = kept;
  some[0].elements.first = 1;
  copies(some, good);
  some.push_back(kept[0]);
  some[0].elements = {0, 4}, some[1].elements = {3, 6};
  copies(some, good);
  some[0].elements = {0, 2}, some[1].elements = {3, 6};
  copies(some, good);
}

TEST_CASE("what is due is what is frozen: nothing is told twice that has been released") {
  auto const layout = small_layout();
  store s({.layout = layout,
           .elements = {0, 6},
           .rule = adding,
           .when = at_once,
           .evaluation_steps = 2,
           .checkpoint_steps = 4});
  CHECK_FALSE(s.due().evaluate);
  CHECK_FALSE(s.due().checkpoint);
  for (std::uint32_t i = 0; i < 4; ++i) s.push({batch(i), 1}, 0, ones, twos);
  CHECK(s.due().version == 4);
  CHECK(s.due().evaluate);
  CHECK(s.due().checkpoint);
  s.frozen().release_evaluation(4);
  CHECK_FALSE(s.due().evaluate);
  CHECK(s.due().checkpoint);
  s.frozen().release_checkpoint(4);
  CHECK_FALSE(s.due().checkpoint);
  s.push({batch(5), 1}, 0, ones, twos);
  CHECK_FALSE(s.due().evaluate);
  // Who has taken a copy has nothing frozen.
  for (std::uint32_t i = 6; i < 9; ++i) s.push({batch(i), 1}, 0, ones, twos);
  CHECK(s.due().checkpoint);
  auto const now = s.full_snapshot();
  s.restore(now.segments, {}, copy_of(now));
  CHECK(s.version() == 8);
  CHECK_FALSE(s.due().checkpoint);
}

TEST_CASE(
    "minibatches of one task in one step, in order, are all counted; out of order or with a gap, none is") {
  auto const layout = small_layout();
  auto const make = [&] {
    return store({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  };
  std::vector<float> sums(6, 4.0f);
  store s = make();
  std::vector<contribution> const two{{batch(7, 0, 3), 1}, {batch(7, 1, 3), 3}};
  CHECK(s.step(two, sums).version == 1);
  CHECK(s.segments().position({0, 7}).applied == 2);
  CHECK(s.current()[0] == 1);  // the mean over four records
  CHECK(s.full_snapshot().ledger().tallies().at(0) == edl::ledger::tally{2, 4});
  store other = make();
  std::vector<contribution> const gap{{batch(7, 0, 3), 1}, {batch(7, 2, 3), 1}};
  CHECK_THROWS_AS(other.step(gap, sums), edl::error);
  std::vector<contribution> const reversed{{batch(7, 1, 3), 1}, {batch(7, 0, 3), 1}};
  CHECK_THROWS_AS(other.step(reversed, sums), edl::error);
  CHECK(other.version() == 0);
  CHECK(other.segments().position({0, 7}).applied == 0);
}

namespace {

/// Variables elsewhere: a step adds the mean of what others have summed there.
struct elsewhere final : edl::arena {
  std::vector<float> variables, slots, sums{8, 8, 8, 8, 4, 4};
  bool holds = false;
  int fetched = 0;

  void place(edl::view<float> v, edl::view<float> s, std::size_t) override {
    variables.assign(v.begin(), v.end());
    slots.assign(s.begin(), s.end());
    holds = true;
  }
  void fetch(std::span<float> v, std::span<float> s) override {
    std::ranges::copy(variables, v.begin());
    std::ranges::copy(slots, s.begin());
    ++fetched;
  }
  void leave() override { holds = false; }
  void step(float rate, std::uint64_t) override {
    for (std::size_t i = 0; i < 4; ++i) variables[i] += rate * sums[i];
  }
  summands sum_with_others(std::vector<std::size_t>) override { return {}; }
  void average(std::uint64_t records) override {
    for (float& s : sums) s /= float(records);
    for (std::size_t i = 4; i < 6; ++i) variables[i] += sums[i];
  }
};

}  // namespace

TEST_CASE("a step of several minibatches where the variables are elsewhere is made there, and counted here") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  elsewhere there;
  s.move_to(there);
  REQUIRE(there.holds);
  std::vector<edl::contribution> const both{{batch(0), 3}, {batch(1), 1}};
  std::vector<float> here(6);
  CHECK_THROWS_AS(s.step(both, here), edl::error);
  CHECK(s.step(both, {}).version == 1);
  CHECK(s.segments().position({0, 1}).closed);
  CHECK(there.fetched == 0);
  CHECK(values(s.current()) == std::vector<float>{2, 2, 2, 2, 1, 1});
  CHECK(s.step(both, {}).version == 1);  // all counted
  s.move_to(there);                      // the next world's
  CHECK(there.variables == std::vector<float>{2, 2, 2, 2, 1, 1});
  there.sums.assign(6, 3);
  edl::contribution const last{batch(2), 3};
  CHECK(s.step({&last, 1}, {}).version == 2);
  s.move_back();
  CHECK_FALSE(there.holds);
  CHECK(values(s.current()) == std::vector<float>{3, 3, 3, 3, 2, 2});
  CHECK(s.push(batch(3), 2, ones, twos).version == 3);
  CHECK(values(s.current()) == std::vector<float>{4, 4, 4, 4, 4, 4});
  s.move_back();  // nothing
  CHECK(there.fetched == 2);
}

TEST_CASE("who has copied a version that is evaluated before the next step has it frozen, and no older one") {
  auto const layout = small_layout();
  store s({.layout = layout,
           .elements = {0, 6},
           .rule = adding,
           .when = at_once,
           .evaluation_steps = 2,
           .rests_to_evaluate = true});
  CHECK_FALSE(s.due().evaluate);  // nothing has been trained
  for (std::uint32_t i = 0; i < 2; ++i) s.push({batch(i), 1}, 0, ones, twos);
  auto const now = s.full_snapshot();
  s.restore(now.segments, {}, copy_of(now));
  CHECK_FALSE(s.frozen().has_evaluation(2));
  CHECK(s.due().evaluate);
  CHECK(s.frozen().has_evaluation(2));
  CHECK(s.frozen().evaluation(2).version() == 2);
  s.push({batch(2), 1}, 0, ones, twos);
  CHECK_FALSE(s.frozen().has_evaluation(2));
  CHECK_FALSE(s.due().evaluate);
}

}  // namespace store_steps_test
