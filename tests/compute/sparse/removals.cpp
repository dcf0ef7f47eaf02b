// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/sparse/removals.hpp"

#include <doctest/doctest.h>

namespace removals_test {

using edl::sparse::removals;
using ids = std::vector<std::uint64_t>;

TEST_CASE("what was removed between two places is known until it is forgotten") {
  removals r(true);
  auto const start = r.end();
  r.add(5), r.add(7);
  auto const middle = r.end();
  r.add(5);
  CHECK(r.between(start, r.end()) == ids{5, 7, 5});
  CHECK(r.between(start, middle) == ids{5, 7});
  r.forget(middle);
  CHECK(r.between(middle, r.end()) == ids{5});
  CHECK_FALSE(r.between(start, r.end()));
  CHECK(r.between(r.end(), r.end()) == ids{});
  CHECK_FALSE(r.between(r.end(), r.end() + 1));
}

TEST_CASE("memory is bounded: whoever comes too late is told") {
  removals r(true);
  for (std::size_t i = 0; i < removals::most; ++i) r.add(i);
  CHECK(r.between(0, r.end())->size() == removals::most);
  r.add(1);
  CHECK_FALSE(r.between(0, r.end()));
  CHECK(r.between(removals::most, r.end()) == ids{1});
}

TEST_CASE("where nothing is remembered, nothing is known") {
  removals r(false);
  r.add(1);
  CHECK_FALSE(r.between(0, r.end()));
}

}  // namespace removals_test
