// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/error.hpp"

namespace table_policy_test {

using edl::nn::row_policy;
using edl::sparse::hash_slots;
using edl::sparse::table;
using edl::sparse::table_snapshot;

namespace {

edl::rule<edl::sgd> const sgd{edl::sgd{.learning_rate = 1}};
edl::rule<edl::adagrad> const adagrad{edl::adagrad{.learning_rate = 0.1f}};
using ids = std::vector<std::uint64_t>;

edl::sparse::table_options from_zero(row_policy policy) {
  return {.width = 1, .initial = edl::nn::constant{0}, .policy = policy, .remembers_removed = true};
}

/// Moves the rows of all these ids by −1.
void push(table& t, ids const& of, std::uint32_t clock) {
  t.push(of, std::vector<float>(of.size() * std::size_t(t.width()), 1), 1, clock, clock);
}

void sweep(table& t, std::uint32_t clock) {
  for (std::uint32_t s = 0; s < hash_slots; ++s) t.sweep(s, clock);
}

float weight(table const& t, std::uint64_t id) {
  float v = 0;
  t.pull(std::span(&id, 1), {&v, 1});
  return v;
}

ids from_to(std::uint64_t first, std::uint64_t last) {
  ids all;
  for (; first < last; ++first) all.push_back(first);
  return all;
}

/// Ids of one hash slot.
ids of_slot(std::size_t n, std::uint32_t slot = 7) {
  ids all;
  for (std::uint64_t id = 0; all.size() < n; ++id)
    if (edl::sparse::id_hash(id).slot() == slot) all.push_back(id);
  return all;
}

/// Everything: what rows and candidates have, by id; candidates have no values.
template <class Rows>
std::map<std::uint64_t, std::vector<float>> content(Rows const& t) {
  std::map<std::uint64_t, std::vector<float>> all;
  auto const add = [&](edl::sparse::row_header const& h, edl::view<float> values) {
    auto& row = all[h.id];
    CHECK(row.empty());
    row = {float(h.last_use), float(h.uses)};
    row.insert(row.end(), values.begin(), values.end());
  };
  for (std::uint32_t s = 0; s < hash_slots; ++s) {
    t.for_each(s, add);
    t.for_each_candidate(s, [&](auto const& h) { add(h, {}); });
  }
  return all;
}

}  // namespace

TEST_CASE("an id gets its row by the minibatch that its policy says, and is only counted before") {
  table t(from_zero({.admission = 3}), sgd);
  push(t, {1, 2}, 1);
  push(t, {1}, 2);
  CHECK(t.counts().rows == 0);
  CHECK(t.counts().candidates == 2);
  CHECK(weight(t, 1) == 0);
  push(t, {1}, 3);
  CHECK(t.counts().rows == 1);
  CHECK(t.counts().candidates == 1);
  CHECK(weight(t, 1) == -1);
  push(t, {1}, 4);
  CHECK(content(t) == std::map<std::uint64_t, std::vector<float>>{{1, {4, 4, -2}}, {2, {1, 1}}});
}

TEST_CASE("rows and candidates that nobody has trained for long enough go, and are remembered as gone") {
  table t(from_zero({.admission = 2, .unused_steps = 10}), sgd);
  for (std::uint32_t clock : {1u, 2u}) push(t, {1, 2, 3}, clock);
  push(t, {9}, 2);
  push(t, {1}, 8);
  sweep(t, 11);
  CHECK(content(t).size() == 4);
  sweep(t, 12);
  CHECK(content(t) == std::map<std::uint64_t, std::vector<float>>{{1, {8, 3, -2}}});
  CHECK(t.counts().evicted == 2);
  auto gone = *t.removed().between(0, t.removed().end());
  std::ranges::sort(gone);
  CHECK(gone == ids{2, 3, 9});
  push(t, {2}, 13);  // begins anew
  CHECK(t.counts().candidates == 1);
  sweep(t, 17);
  sweep(t, 18);
  CHECK(t.counts().rows == 0);
}

TEST_CASE("a bound on rows is never exceeded; those go that were unused longest, or least used") {
  for (auto const victims : {edl::nn::row_victims::least_recent, edl::nn::row_victims::least_used}) {
    // 32 rows a hash slot, of which two go at a time.
    table t(from_zero({.most_rows = 32 * hash_slots - 5, .victims = victims}), sgd);
    ids const all = of_slot(40);
    for (std::size_t i = 0; i < 32; ++i) push(t, {all[i]}, std::uint32_t(i + 1));
    push(t, {all[0]}, 50);
    push(t, {all[0], all[1]}, 51);
    CHECK(t.size() == 32);
    push(t, {all[32]}, 52);
    CHECK(t.size() == 31);
    CHECK(t.counts().evicted == 2);
    // 0 and 1 were both used again, and all others once: 2 and 3 are the oldest either way.
    for (std::size_t i : {0u, 1u, 4u, 32u}) CHECK(weight(t, all[i]) != 0);
    for (std::size_t i : {2u, 3u}) CHECK(weight(t, all[i]) == 0);
    if (victims == edl::nn::row_victims::least_used) continue;
    push(t, ids(all.begin() + 4, all.begin() + 32), 53);
    push(t, {all[33]}, 54);
    push(t, {all[34]}, 55);
    CHECK(weight(t, all[0]) == 0);
    CHECK(weight(t, all[1]) == 0);
  }
}

TEST_CASE("a push that brings more ids than the table holds keeps the bound and trains each once") {
  table t(from_zero({.most_rows = 16 * hash_slots}), sgd);
  ids const all = of_slot(200);
  for (std::uint32_t clock = 1; clock <= 5; ++clock) {
    push(t, all, clock);
    CHECK(t.size() <= 16);
  }
  std::size_t trained = 0;
  for (auto const& [id, row] : content(t)) {
    CHECK(row == std::vector<float>{5, 1, -1});  // they came anew each time
    ++trained;
  }
  CHECK(trained == t.size());
  CHECK(weight(t, all.back()) == -1);
}

TEST_CASE("candidates are as many as rows at most") {
  table t(from_zero({.admission = 2, .most_rows = 16 * hash_slots}), sgd);
  push(t, of_slot(100), 1);
  CHECK(t.counts().candidates <= 16);
  CHECK(t.counts().rows == 0);
}

TEST_CASE("tables that see the same pushes and sweeps are equal, whatever goes") {
  row_policy const policy{.admission = 2, .unused_steps = 30, .most_rows = 2 * hash_slots};
  table a(from_zero(policy), adagrad), b(from_zero(policy), adagrad);
  std::mt19937_64 random(5);
  std::optional<table_snapshot> snapshot;
  std::map<std::uint64_t, std::vector<float>> then;
  for (std::uint32_t clock = 1; clock < 200; ++clock) {
    std::set<std::uint64_t> some;
    for (int i = 0; i < 700; ++i) some.insert(random() % (random() % 2 ? 30'000 : 500));
    ids const all(some.begin(), some.end());
    for (table* t : {&a, &b}) push(*t, all, clock), sweep(*t, clock);
    CHECK(a.size() <= 2 * hash_slots);
    if (clock == 100) then = content(a), snapshot.emplace(a);
    if (clock == 130) {
      CHECK(content(*snapshot) == then);
      // Whoever comes late gets a copy, and goes on with it.
      b.clear();
      for (std::uint32_t s = 0; s < hash_slots; ++s) {
        a.for_each(s, [&](auto const& h, auto values) { b.put(h, values); });
        a.for_each_candidate(s, [&](auto const& h) { b.put(h, {}); });
      }
    }
  }
  CHECK(content(a) == content(b));
  CHECK(content(*snapshot) == then);
  CHECK(a.counts().evicted > 0);
  CHECK(a.counts().candidates > 0);
}

TEST_CASE("what is put takes the place of what was there, and what is removed is gone") {
  table t(from_zero({.admission = 2}), sgd);
  push(t, {1}, 1);
  std::vector<float> const row{7};
  t.put({.id = 1, .last_use = 5, .uses = 9}, row);
  CHECK(content(t) == std::map<std::uint64_t, std::vector<float>>{{1, {5, 9, 7}}});
  t.put({.id = 1, .last_use = 6, .uses = 1}, {});
  CHECK(content(t) == std::map<std::uint64_t, std::vector<float>>{{1, {6, 1}}});
  t.remove(1);
  t.remove(2);
  CHECK(content(t).empty());
}

TEST_CASE("rows of bfloat16 take half of the memory for weights, and learn") {
  auto options = from_zero({.values = edl::nn::row_values::bfloat16});
  options.width = 16;
  table half(options, sgd), whole({.width = 16, .initial = edl::nn::constant{0}}, sgd);
  ids const all = from_to(0, 20'000);
  push(half, all, 1), push(whole, all, 1);
  CHECK(half.payload() * 2 == whole.payload());
  std::vector<float> w(16);
  for (std::uint32_t i = 0; i < 1000; ++i)
    half.push(ids{5}, std::vector<float>(16, 0.001f), 1, i, i);  // each below the precision of 1
  half.pull(ids{5}, w);
  for (float v : w) CHECK(v == doctest::Approx(-2).epsilon(0.1));
}

TEST_CASE("threads may train, sweep and look beside one another in a full table") {
  table t(from_zero({.admission = 2, .unused_steps = 3, .most_rows = hash_slots}), sgd);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t k = 0; k < 8; ++k)
      threads.emplace_back([&t, k] {
        std::mt19937_64 random(k);
        for (std::uint32_t clock = 1; clock < 60; ++clock) {
          ids some(300);
          for (auto& id : some) id = random() % 20'000;
          push(t, some, clock);
          if (k == 0) sweep(t, clock);
          if (k == 1) table_snapshot const snapshot(t);
          weight(t, some[0]);
        }
      });
  }
  CHECK(t.size() <= hash_slots);
}

TEST_CASE("a policy that nothing can follow is refused") {
  CHECK_THROWS_WITH_AS(table(from_zero({.admission = 0}), sgd), doctest::Contains("a table of admission 0"),
                       edl::usage_error);
}

}  // namespace table_policy_test
