// SPDX-License-Identifier: Apache-2.0
#include "edl/sparse/row_bytes.hpp"

#include <doctest/doctest.h>

#include <set>

#include "edl/core/error.hpp"
#include "edl/optim/adagrad.hpp"
#include "edl/optim/rule.hpp"

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
      std::string some;
      edl::sparse::append_rows(t, at, edl::sparse::hash_slots, most, some);
      if (most < 10'000) CHECK(some.size() <= most + 40);
      edl::sparse::for_each_row(std::as_bytes(std::span(some)), t.values(), [&](auto const& h, auto values) {
        seen.insert(h.id);
        REQUIRE(h.last_use == 7);
        REQUIRE(values.size() == 6);
      });
    }
    CHECK(seen.size() == ids.size());
  }
  std::string const part(41, 'x');
  CHECK_THROWS_WITH_AS(edl::sparse::for_each_row(std::as_bytes(std::span(part)), 6, [](auto const&, auto) {}),
                       "41 bytes are no rows of 40 bytes each", edl::error);
}
