// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/policy.hpp"

#include <doctest/doctest.h>

namespace policy_test {

using namespace edl::ps;

TEST_CASE("asynchronous: nothing is too old, and age may weigh") {
  asynchronous const plain, modulated(true);
  CHECK(plain.group() == 1);
  CHECK_FALSE(plain.stale(1000, 0));
  CHECK(plain.rate(1000, 0) == 1);
  CHECK(modulated.rate(10, 10) == 1);
  CHECK(modulated.rate(10, 9) == 1);
  CHECK(modulated.rate(10, 6) == 0.25f);
  CHECK(modulated.rate(6, 10) == 1);  // another server was ahead
}

TEST_CASE("synchronous: what is older than the tolerance is refused") {
  synchronous const strict(4), lenient(4, 2);
  CHECK(strict.group() == 4);
  CHECK_FALSE(strict.stale(10, 10));
  CHECK(strict.stale(10, 9));
  CHECK_FALSE(strict.stale(9, 10));
  CHECK_FALSE(lenient.stale(10, 8));
  CHECK(lenient.stale(10, 7));
  CHECK_FALSE(lenient.stale(1, 0));
  CHECK_FALSE(synchronous(1, ~0ull).stale(~0ull, 0));
  CHECK(synchronous(0).group() == 1);
}

}  // namespace policy_test
