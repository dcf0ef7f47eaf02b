// SPDX-License-Identifier: Apache-2.0
#include "edl/core/intervals.hpp"

#include <doctest/doctest.h>

#include <set>

#include "edl/core/random.hpp"

namespace intervals_test {

TEST_CASE("runs merge where they touch or overlap") {
  edl::intervals s;
  s.insert(2, 4);
  s.insert(6, 8);
  CHECK(s.runs().size() == 2);
  s.insert(4, 6);
  CHECK(s.runs().size() == 1);
  CHECK(s.count() == 6);
  s.insert(0, 100);
  CHECK(s.runs().size() == 1);
  s.insert(5, 5);  // nothing
  CHECK(s.count() == 100);
}

TEST_CASE("a set of numbers, however it was put in, and what two have in common") {
  edl::random_stream const random{5, 0};
  edl::intervals a, b;
  std::set<std::uint32_t> as, bs;
  for (std::uint64_t i = 0; i < 400; ++i) {
    auto const begin = std::uint32_t(random.below(1000, 3 * i)),
               end = begin + std::uint32_t(random.below(6, 3 * i + 1));
    bool const first = random.below(2, 3 * i + 2) != 0;
    (first ? a : b).insert(begin, end);
    for (std::uint32_t v = begin; v < end; ++v) (first ? as : bs).insert(v);
  }
  edl::intervals const both = a.intersection(b);
  for (std::uint32_t v = 0; v < 1010; ++v) {
    REQUIRE(a.contains(v) == as.contains(v));
    REQUIRE(both.contains(v) == (as.contains(v) && bs.contains(v)));
  }
  CHECK(a.count() == as.size());
}

}  // namespace intervals_test
