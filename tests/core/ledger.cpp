// SPDX-License-Identifier: Apache-2.0
#include "edl/core/ledger.hpp"

#include <doctest/doctest.h>

namespace ledger_test {

using edl::ledger;
using edl::minibatch_key;
using enum edl::ledger::sequence_check;

TEST_CASE("minibatches of a task count once, in order") {
  ledger l;
  minibatch_key const first{{0, 5}, 0, 3}, second{{0, 5}, 1, 3}, third{{0, 5}, 2, 3};
  CHECK(l.check(second) == gap);
  CHECK(l.check(first) == next);
  l.apply(first);
  CHECK(l.check(first) == repeat);
  CHECK(l.position({0, 5}) == 1);
  l.apply(second);
  l.apply(third);
  CHECK(l.closed({0, 5}));
  CHECK(l.check(third) == repeat);
  CHECK(l.open().empty());
  CHECK(l.check({{1, 5}, 0, 3}) == next);  // another epoch is another task
}

TEST_CASE("closed tasks of a whole epoch are one interval") {
  ledger l;
  for (std::uint32_t i = 0; i < 1000; ++i) l.apply({{{2, (i * 7919) % 1000}}, 0, 1});
  CHECK(l.closed().at(2).runs().size() == 1);
  CHECK(l.closed().at(2).count() == 1000);
}

TEST_CASE("the intersection is what every server has applied") {
  ledger a, b;
  a.set_closed(0, 0, 10), b.set_closed(0, 5, 20);
  a.set_open({0, 30}, 4), b.set_open({0, 30}, 2);
  a.set_open({0, 7}, 1);   // b has closed 7
  a.set_open({0, 40}, 3);  // b never saw 40
  b.set_open({0, 3}, 6);   // a has closed 3
  a.intersect(b);
  CHECK(a.closed().at(0).count() == 5);
  CHECK(a.position({0, 30}) == 2);
  CHECK(a.position({0, 40}) == 0);
  CHECK(a.position({0, 3}) == 6);
}

}  // namespace ledger_test
