// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/sparse/table_snapshot.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"

namespace table_snapshot_test {

using edl::sparse::table;
using edl::sparse::table_snapshot;

namespace {

edl::rule<edl::adagrad> const adagrad{edl::adagrad{.learning_rate = 0.1f}};
using content = std::map<std::uint64_t, std::pair<std::uint32_t, std::vector<float>>>;  // last use, values

template <class Rows>
content content_of(Rows const& from) {
  content all;
  for (std::uint32_t s = 0; s < edl::sparse::hash_slots; ++s)
    from.for_each(s, [&](auto const& header, edl::view<float> values) {
      CHECK(edl::sparse::id_hash(header.id).slot() == s);
      CHECK(all.try_emplace(header.id, header.last_use, std::vector(values.begin(), values.end())).second);
    });
  return all;
}

void push(table& t, std::uint64_t first, std::uint64_t count, float gradient, std::uint32_t clock) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < count; ++i) ids.push_back(first + i);
  t.push(ids, std::vector<float>(count * std::size_t(t.width()), gradient), 0.1f, 0, clock);
}

}  // namespace

TEST_CASE("a snapshot is what the table was, whatever is changed, made, removed and made again") {
  table t({.width = 2}, adagrad);
  push(t, 0, 3000, 1, 1);
  content const then = content_of(t);
  table_snapshot const snapshot(t);
  push(t, 1000, 4000, 2, 2);
  push(t, 1000, 10, 3, 3);
  CHECK(t.remove_if([](auto const& h) { return h.id % 3 == 0; }) == 1667);
  push(t, 0, 100, 4, 4);
  t.put({.id = 5, .last_use = 9, .uses = 9}, std::vector<float>(4, 7));
  CHECK(content_of(t) != then);
  CHECK(content_of(snapshot) == then);
  CHECK(content_of(snapshot) == then);  // as often as it is asked
  CHECK(snapshot.size() == 3000);
  std::uint64_t rows = 0;
  for (std::uint32_t s = 0; s < edl::sparse::hash_slots; ++s) rows += snapshot.size(s);
  CHECK(rows == 3000);
}

TEST_CASE("snapshots of one table are independent, and one that is gone costs nothing") {
  table t({.width = 1}, adagrad);
  table_snapshot const none(t);
  push(t, 0, 10, 1, 1);
  content const early = content_of(t);
  auto first = std::make_unique<table_snapshot>(t);
  push(t, 5, 10, 1, 2);
  content const late = content_of(t);
  table_snapshot const second(t);
  t.clear();
  CHECK(t.size() == 0);
  CHECK(content_of(*first) == early);
  first.reset();
  push(t, 0, 20, 5, 3);
  CHECK(content_of(second) == late);
  CHECK(content_of(none).empty());
}

TEST_CASE("rows that are put into another table are the same there") {
  table a({.width = 3, .seed = 1}, adagrad), b({.width = 3, .seed = 2}, adagrad);
  push(a, 7, 500, 1, 6);
  for (std::uint32_t s = 0; s < edl::sparse::hash_slots; ++s)
    a.for_each(s, [&](auto const& header, edl::view<float> values) { b.put(header, values); });
  CHECK(content_of(a) == content_of(b));
  CHECK_THROWS_WITH_AS(b.put({}, std::vector<float>(3)), "a row of 3 values for a table of 6", edl::error);
}

}  // namespace table_snapshot_test
