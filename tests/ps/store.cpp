// SPDX-License-Identifier: Apache-2.0
#include "edl/ps/store.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "edl/checkpoint/directory.hpp"
#include "edl/checkpoint/layout_digest.hpp"
#include "ps/rules.hpp"
#include "wire/scratch.hpp"

using namespace edl::ps;
using edl::contribution;
using edl::minibatch_key;

namespace {

adding_rule const adding;
momentum_rule const momentum;
asynchronous const at_once;

edl::parameter_layout small_layout() { return {{{"w", {4}, 0}, {"mean", {2}, 4}}, 4, 2}; }

std::vector<float> const ones(4, 1), twos(2, 2);

minibatch_key batch(std::uint32_t task, std::uint32_t index = 0, std::uint32_t count = 1) {
  return {{0, task}, index, count};
}

std::vector<float> values(edl::view<float> of) { return {of.begin(), of.end()}; }

/// A checkpoint of stores that lie side by side; its path.
std::string save(scratch const& dir, edl::parameter_layout const& layout, std::uint64_t version,
                 std::vector<edl::ps::cut> const& cuts) {
  auto const path = edl::checkpoint::checkpoint_path(dir.path, version);
  edl::checkpoint::begin_checkpoint(path);
  edl::checkpoint::manifest all{
      .job = "j", .version = version, .layout = edl::checkpoint::layout_digest(layout)};
  for (std::uint32_t i = 0; i < cuts.size(); ++i)
    all.files.push_back(write_cut(cuts[i], path, layout, i, std::uint32_t(cuts.size())));
  edl::checkpoint::commit_checkpoint(path, all);
  return path;
}

}  // namespace

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
  auto const cut = s.cut();
  CHECK(cut.slot_names == std::vector<std::string>{"momentum", "count"});
  CHECK(cut.slots.values()[1] == 0.125f);
  CHECK(cut.slots.values()[cut.slot_stride] == 0);
}

TEST_CASE("asynchronous: each push is a step, a repeat is none") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  auto r = s.push(batch(7, 0, 2), 0, ones, twos);
  CHECK(r.verdict == verdict::applied);
  CHECK(r.version == 1);
  CHECK(values(s.current()) == std::vector<float>{1, 1, 1, 1, 2, 2});
  r = s.push(batch(7, 0, 2), 0, ones, twos);
  CHECK(r.verdict == verdict::repeat);
  CHECK(r.version == 1);
  CHECK(s.position({0, 7}).applied == 1);
  CHECK(s.push(batch(7, 1, 2), 0, ones, twos).version == 2);
  CHECK(s.position({0, 7}).closed);
  CHECK(s.push(batch(7, 1, 2), 0, ones, twos).verdict == verdict::repeat);
  CHECK(s.position({0, 8}).applied == 0);
  CHECK_FALSE(s.position({0, 8}).closed);
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

TEST_CASE("synchronous: the mean of a group is a step") {
  auto const layout = small_layout();
  synchronous const group(2, 1);
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = group});
  std::vector<float> const threes(4, 3), fours(2, 4);
  CHECK(s.push(batch(0), 0, ones, twos).version == 0);
  CHECK(values(s.current()) == std::vector<float>(6, 0));
  CHECK(s.position({0, 0}).closed);  // counted: it is not to be sent again
  CHECK(s.push(batch(0), 0, ones, twos).verdict == verdict::repeat);
  CHECK(s.push(batch(1), 0, threes, fours).version == 1);
  CHECK(values(s.current()) == std::vector<float>{2, 2, 2, 2, 3, 3});
  s.push(batch(2), 1, ones, twos);
  s.push(batch(3), 1, ones, twos);
  CHECK(s.version() == 2);
  auto const r = s.push(batch(4), 0, ones, twos);
  CHECK(r.verdict == verdict::stale);
  CHECK(r.version == 2);
  CHECK_FALSE(s.position({0, 4}).closed);
  CHECK(s.push(batch(3), 0, ones, twos).verdict == verdict::repeat);  // old, but counted
  CHECK(s.push(batch(4), 1, ones, twos).verdict == verdict::applied);
  CHECK(s.flush().version == 3);
  CHECK(values(s.current()) == std::vector<float>{4, 4, 4, 4, 7, 7});
  CHECK(s.flush().version == 3);  // nothing waits
}

TEST_CASE("what is accumulated is neither in the variables nor in the ledger of a cut") {
  auto const layout = small_layout();
  synchronous const group(2);
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = group});
  s.push(batch(0, 0, 3), 0, ones, twos);
  s.push(batch(0, 1, 3), 0, ones, twos);
  s.push(batch(0, 2, 3), 1, ones, twos);
  CHECK(s.position({0, 0}).closed);
  auto const cut = s.cut();
  CHECK(cut.version() == 1);
  CHECK(cut.variables.variables()[0] == 1);
  CHECK_FALSE(cut.ledger().closed({0, 0}));
  CHECK(cut.ledger().position({0, 0}) == 2);
  s.flush();
  CHECK(s.cut().ledger().closed({0, 0}));
}

TEST_CASE("what is accumulated and dropped may come again, and a copy made meanwhile goes on alike") {
  auto const layout = small_layout();
  synchronous const group(2);
  store_options const o{.layout = layout, .elements = {0, 6}, .rule = adding, .when = group};
  store s(o), copy(o);
  s.configure([](std::size_t, std::span<float> into) { std::ranges::fill(into, 0.0f); });
  s.push({batch(0, 0, 2), 1, 0}, 0, ones, twos);
  auto const cut = s.cut();
  std::vector<float> state = values(cut.variables.variables());
  state.insert(state.end(), cut.slots.values().begin(), cut.slots.values().end());
  copy.restore(cut.segments, state);
  s.drop_waiting();
  CHECK(s.counted() == copy.counted());
  for (std::uint32_t i = 0; i < 2; ++i)
    for (store* one : {&s, &copy})
      CHECK(one->push({batch(0, i, 2), 1, 0}, 0, ones, twos).verdict == verdict::applied);
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
  CHECK(s.cut().ledger() == edl::ledger{});
  CHECK(contains(complaint([&] {
                   store({.layout = layout, .elements = {0, 7}, .rule = adding, .when = at_once});
                 }),
                 "not in a model of 6"));
}

TEST_CASE("a snapshot stays what it was") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  s.push(batch(0), 0, ones, twos);
  auto const one = s.snapshot();
  auto const before = values(one.variables());
  auto const whole = s.cut();
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
  CHECK(contains(complaint([&] { s.evaluation(2); }),
                 "version 2 is not frozen for an evaluation"));  // gave way
  CHECK(s.evaluation(4).variables()[0] == 4);
  CHECK(s.evaluation(6).version() == 6);
  s.push(batch(7), 7, ones, twos);
  CHECK(contains(complaint([&] { s.evaluation(8); }), "version 8"));  // two are under way
  auto const third = s.checkpoint(3);
  CHECK(third.ledger().closed().at(0).count() == 3);
  CHECK(third.variables.variables()[0] == 3);
  s.release_checkpoint(3);
  s.release_evaluation(4);
  CHECK(contains(complaint([&] { s.checkpoint(3); }), "version 3 is not frozen for a checkpoint"));
  CHECK(contains(complaint([&] { s.evaluation(4); }), "version 4"));
  s.configure([](std::size_t, std::span<float>) {});
  CHECK(contains(complaint([&] { s.evaluation(6); }), "version 6"));
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
  auto const path = save(dir, layout, 2, {a.cut(), b.cut()});

  store s({.layout = layout, .elements = {0, 32}, .rule = adding, .when = at_once});
  s.restore(path);
  CHECK(s.version() == 2);
  CHECK(s.segments() == 2);
  CHECK(s.position({0, 0}).applied == 1);
  CHECK_FALSE(s.position({0, 0}).closed);
  CHECK_FALSE(s.position({0, 1}).closed);
  CHECK(contains(complaint([&] { s.push(batch(2, 1, 2), 2, whole, {}); }), "has not arrived"));
  CHECK(s.push(batch(0, 0, 2), 2, whole, {}).verdict == verdict::repeat);
  auto r = s.push(batch(0, 1, 2), 2, whole, {});
  CHECK(r.verdict == verdict::applied);
  CHECK(r.version == 2);  // half of it is still to come
  CHECK(s.segments() == 2);
  r = s.push(batch(1), 2, whole, {});
  CHECK(r.version == 3);
  CHECK(s.segments() == 1);
  CHECK(values(s.current()) == std::vector<float>(32, 3));

  // The same files under another job: its ledger means nothing there.
  s.restore(path, history::forgotten);
  CHECK(s.version() == 2);
  CHECK(s.segments() == 1);
  CHECK(s.push(batch(0, 0, 2), 2, whole, {}).verdict == verdict::applied);
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
  auto const path = save(dir, layout, 0, {other.cut()});
  CHECK(contains(complaint([&] { s.restore(path); }), "slots/momentum/w"));
  CHECK_THROWS_AS(s.configure([](std::size_t, std::span<float>) { throw edl::error("no"); }), edl::error);
  CHECK(values(s.current()) == before);
  CHECK(s.version() == 1);
  CHECK(s.push(batch(0), 0, ones, twos).verdict == verdict::repeat);
}

TEST_CASE("a store without elements keeps the ledger, and a checkpoint of it can be read") {
  scratch const dir;
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {6, 6}, .rule = momentum, .when = at_once});
  store rest({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  CHECK(s.push(batch(0), 0, {}, {}).version == 1);
  CHECK(s.push(batch(0), 0, {}, {}).verdict == verdict::repeat);
  rest.push(batch(0), 0, ones, twos);
  auto const path = save(dir, layout, 1, {rest.cut(), s.cut()});
  store again({.layout = layout, .elements = {6, 6}, .rule = momentum, .when = at_once});
  again.restore(path);
  CHECK(again.version() == 1);
  CHECK(again.position({0, 0}).closed);
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

// ---- Steps that copies make together ----

namespace {

/// What an all-reduce gives: for every element, the sum of value × records over contributions.
std::vector<float> sums_of(std::vector<std::pair<float, edl::contribution>> const& all, std::size_t elements,
                           store const& of) {
  std::vector<float> sum(elements, 0);
  for (auto const& [value, c] : all) {
    std::vector<float> one(elements, value * float(c.records));
    auto const whole = one;
    of.leave_out(c, one);
    CHECK(of.lacks(c) == (one == whole));
    for (std::size_t i = 0; i < elements; ++i) sum[i] += one[i];
  }
  return sum;
}

std::vector<edl::contribution> keys_of(std::vector<std::pair<float, edl::contribution>> const& all) {
  std::vector<edl::contribution> out;
  for (auto const& [value, c] : all) out.push_back(c);
  return out;
}

bool same(edl::ps::cut const& a, edl::ps::cut const& b) {
  bool alike = values(a.variables.variables()) == values(b.variables.variables()) &&
               values(a.slots.values()) == values(b.slots.values()) && a.segments.size() == b.segments.size();
  for (std::size_t i = 0; alike && i < a.segments.size(); ++i)
    alike = a.segments[i].elements.first == b.segments[i].elements.first &&
            a.segments[i].elements.last == b.segments[i].elements.last &&
            a.segments[i].steps == b.segments[i].steps && a.segments[i].ledger == b.segments[i].ledger;
  return alike && a.version() == b.version();
}

std::vector<float> copy_of(edl::ps::cut const& c) {
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
  CHECK(r.verdict == verdict::applied);
  CHECK(r.version == 1);
  CHECK(values(s.current()) == std::vector<float>(6, (2.0f * 4 + 5.0f * 1 - 1.0f * 3) / 8));
  CHECK(s.position({0, 0}).applied == 1);
  CHECK(s.position({0, 1}).closed);
  CHECK(s.position({0, 2}).closed);
  auto const ledger = s.cut().ledger();
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
  CHECK(same(one.cut(), pushed.cut()));
}

TEST_CASE("a step of minibatches that have all been counted is none") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  std::vector<std::pair<float, edl::contribution>> const all{{2.0f, {batch(0), 4}}, {3.0f, {batch(1), 4}}};
  auto sums = sums_of(all, 6, s);
  s.step(keys_of(all), sums);
  auto const before = s.cut();
  sums = sums_of(all, 6, s);
  CHECK(sums == std::vector<float>(6, 0));
  CHECK(s.step(keys_of(all), sums).version == 1);
  CHECK(same(before, s.cut()));
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
  std::vector<edl::ps::cut> cuts;
  // Three servers: one has task 0 and the half of 2, one the half of task 0 and task 1, one nothing.
  store a({.layout = layout, .elements = {0, 16}, .rule = adding, .when = at_once});
  store b({.layout = layout, .elements = {16, 32}, .rule = adding, .when = at_once});
  store c({.layout = layout, .elements = {32, 48}, .rule = adding, .when = at_once});
  a.push({batch(0, 0, 2), 4}, 0, part, {}), a.push({batch(0, 1, 2), 4}, 0, part, {});
  a.push({batch(2, 0, 2), 4}, 0, part, {});
  b.push({batch(0, 0, 2), 4}, 0, part, {}), b.push({batch(1), 4}, 0, part, {});
  auto const path = save(dir, layout, 3, {a.cut(), b.cut(), c.cut()});

  // Two copies make the same steps; each leaves out of its own minibatch what has it.
  store x({.layout = layout, .elements = {0, 48}, .rule = adding, .when = at_once}),
      y({.layout = layout, .elements = {0, 48}, .rule = adding, .when = at_once});
  x.restore(path), y.restore(path);
  CHECK(x.segments() == 3);
  std::vector<std::vector<std::pair<float, edl::contribution>>> const steps{
      {{1.0f, {batch(0, 0, 2), 4}}, {1.0f, {batch(1), 4}}},
      {{1.0f, {batch(0, 1, 2), 4}}, {1.0f, {batch(2, 0, 2), 4}}},
      {{1.0f, {batch(2, 1, 2), 4}}, {1.0f, {batch(3), 4}}}};
  for (auto const& all : steps)
    for (store* s : {&x, &y}) {
      auto sums = sums_of(all, 48, *s);
      s->step(keys_of(all), sums);
    }
  CHECK(same(x.cut(), y.cut()));
  // Every step adds the mean, which is 1, to what takes part in it: so values tell the number of steps.
  CHECK(x.current()[0] == 3 + 3 - 1);       // not in the first: it had both of it
  CHECK(x.current()[16] == 2 + 3 - 0 - 1);  // likewise
  CHECK(x.current()[32] == 3);
  for (std::uint32_t t = 0; t < 4; ++t) CHECK(x.position({0, t}).closed);
  auto const after = x.cut();
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
  auto const path = save(dir, layout, 2, {left.cut(), right.cut()});
  store original(options), copied(options);
  original.restore(path);
  REQUIRE(original.segments() == 2);
  copied.push({batch(9), 1}, 0, std::vector<float>(20, 4), std::vector<float>(3, 4));  // to be forgotten
  copied.push({batch(10), 1}, 0, std::vector<float>(20, 4), std::vector<float>(3, 4));
  CHECK(copied.has_evaluation(2));

  auto const now = original.cut();
  auto const all = copy_of(now);
  CHECK(all.size() == original.copy_size());
  copied.restore(now.segments, all);
  CHECK(same(original.cut(), copied.cut()));
  CHECK_FALSE(copied.has_evaluation(2));
  CHECK_FALSE(copied.position({0, 9}).closed);
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
    CHECK(same(original.cut(), copied.cut()));
  }
  // And by pushes.
  original.push({batch(7), 4}, 0, std::vector<float>(20, 0.3f), std::vector<float>(3, 0.3f));
  copied.push({batch(7), 4}, 0, std::vector<float>(20, 0.3f), std::vector<float>(3, 0.3f));
  CHECK(same(original.cut(), copied.cut()));
}

TEST_CASE("steps and copies that make no sense change nothing") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  s.push({batch(0, 0, 3), 4}, 0, ones, twos);
  auto const before = s.cut();
  auto const refuses = [&](std::vector<edl::contribution> const& all, std::size_t elements, char const* why) {
    std::vector<float> sums(elements, 1);
    CHECK(contains(complaint([&] { s.step(all, sums); }), why));
    CHECK(same(before, s.cut()));
  };
  refuses({{batch(1), 4}}, 5, "5 sums, this store keeps 6");
  refuses({{batch(1), 4}, {batch(0, 2, 3), 4}}, 6, "minibatch 2 of 3 of task 0 in epoch 0");
  refuses({{batch(1), 4}, {batch(4, 3, 3), 4}}, 6, "minibatch 3 of 3 of task 4");
  refuses({{batch(1), 4}, {batch(2), 4}, {batch(1), 4}}, 6, "minibatch 0 of task 1 in epoch 0 twice");

  auto const good = copy_of(before);
  auto const kept = before.segments;
  auto const copies = [&](std::vector<edl::checkpoint::segment> segments, std::vector<float> const& all) {
    CHECK(contains(complaint([&] { s.restore(std::move(segments), all); }), "is no copy"));
    CHECK(same(before, s.cut()));
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
  s.release_evaluation(4);
  CHECK_FALSE(s.due().evaluate);
  CHECK(s.due().checkpoint);
  s.release_checkpoint(4);
  CHECK_FALSE(s.due().checkpoint);
  s.push({batch(5), 1}, 0, ones, twos);
  CHECK_FALSE(s.due().evaluate);
  // Who has taken a copy has nothing frozen.
  for (std::uint32_t i = 6; i < 9; ++i) s.push({batch(i), 1}, 0, ones, twos);
  CHECK(s.due().checkpoint);
  auto const now = s.cut();
  s.restore(now.segments, copy_of(now));
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
  CHECK(s.position({0, 7}).applied == 2);
  CHECK(s.current()[0] == 1);  // the mean over four records
  CHECK(s.cut().ledger().tallies().at(0) == edl::ledger::tally{2, 4});
  store other = make();
  std::vector<contribution> const gap{{batch(7, 0, 3), 1}, {batch(7, 2, 3), 1}};
  CHECK_THROWS_AS(other.step(gap, sums), edl::error);
  std::vector<contribution> const reversed{{batch(7, 1, 3), 1}, {batch(7, 0, 3), 1}};
  CHECK_THROWS_AS(other.step(reversed, sums), edl::error);
  CHECK(other.version() == 0);
  CHECK(other.position({0, 7}).applied == 0);
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
  CHECK(s.position({0, 1}).closed);
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
