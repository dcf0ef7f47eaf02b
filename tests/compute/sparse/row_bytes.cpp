// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/sparse/row_bytes.hpp"

#include <doctest/doctest.h>

#include <set>

#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"

namespace row_bytes_test {

TEST_CASE("all rows of a table are read some at a time, also within a hash slot") {
  edl::rule<edl::adagrad> const adagrad{edl::adagrad{}};
  edl::sparse::table t({.width = 3}, adagrad);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < 20'000; ++i) ids.push_back(i);
  t.push(ids, std::vector<float>(ids.size() * 3, 1), 0.1f, 0, 7);
  for (std::size_t const most : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 30}) {
    std::set<std::uint64_t> seen;
    edl::sparse::row_cursor at;
    while (at.slot < edl::sparse::hash_slots) {
      edl::sparse::copied_rows some;
      edl::sparse::append_rows(t, at, edl::sparse::hash_slots, most, some);
      if (most < 10'000) CHECK(some.rows.size() <= most + 40);
      edl::sparse::for_each_row(std::as_bytes(std::span(some.rows)), t.values(),
                                [&](auto const& h, auto values) {
                                  seen.insert(h.id);
                                  REQUIRE(h.last_use == 7);
                                  REQUIRE(values.size() == 6);
                                });
    }
    CHECK(seen.size() == ids.size());
  }
  std::string const part(41, 'x');
  CHECK_THROWS_WITH_AS(edl::sparse::for_each_row(std::as_bytes(std::span(part)), 6, [](auto const&, auto) {}),
                       "41 bytes are not a whole number of rows of 40 bytes", edl::error);
}

TEST_CASE("candidates are read with the rows of their hash slots, each once") {
  edl::rule<edl::adagrad> const adagrad{edl::adagrad{}};
  edl::sparse::table from({.width = 1, .policy = {.admission = 2}}, adagrad),
      to({.width = 1, .policy = {.admission = 2}}, adagrad);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < 9000; ++i) ids.push_back(i);
  std::vector<float> const slopes(ids.size(), 1);
  from.push(ids, slopes, 0.1f, 0, 1);
  from.push(std::span(ids).first(4000), std::span(slopes).first(4000), 0.1f, 1, 2);
  for (edl::sparse::row_cursor at; at.slot < edl::sparse::hash_slots;) {
    edl::sparse::copied_rows some;
    edl::sparse::append_rows(from, at, edl::sparse::hash_slots, 100, some);
    auto const put = [&](auto const& h, auto values) { to.put(h, values); };
    edl::sparse::for_each_row(std::as_bytes(std::span(some.rows)), from.values(), put);
    edl::sparse::for_each_row(std::as_bytes(std::span(some.candidates)), 0, put);
  }
  CHECK(to.counts().rows == 4000);
  CHECK(to.counts().candidates == 5000);
  to.push(std::span(ids).last(5000), std::span(slopes).last(5000), 0.1f, 2, 3);
  CHECK(to.counts().rows == 9000);
}

}  // namespace row_bytes_test
