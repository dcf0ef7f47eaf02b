// SPDX-License-Identifier: Apache-2.0
#include "edl/job/replica/buckets.hpp"

#include <doctest/doctest.h>

namespace buckets_test {

using edl::replica::buckets;

TEST_CASE("buckets are all parameters, one after the other, of the size that was asked for but for a line") {
  for (std::size_t const parameters : {0u, 1u, 15u, 16u, 17u, 1000u, 4097u, 100'003u})
    for (std::size_t const most : {1u, 64u, 100u, 4096u, 1u << 20}) {
      CAPTURE(parameters);
      CAPTURE(most);
      buckets const b(parameters, most);
      std::size_t next = 0;
      for (std::size_t i = 0; i < b.count(); ++i) {
        CHECK(b[i].first == next);
        CHECK(b[i].size() * sizeof(float) <= most + 64);
        if (b[i].last < parameters) CHECK(b[i].last % 16 == 0);
        next = b[i].last;
      }
      CHECK(next == parameters);
    }
}

TEST_CASE("a bucket is final when its first gradient is") {
  buckets const b(320, 4 * 80);  // 4 of 80
  REQUIRE(b.count() == 4);
  CHECK(b.final_from(320, 4) == 4);
  CHECK(b.final_from(241, 4) == 4);
  CHECK(b.final_from(240, 4) == 3);
  CHECK(b.final_from(100, 3) == 2);
  CHECK(b.final_from(100, 1) == 1);  // those before are not told of again
  CHECK(b.final_from(0, 2) == 0);
}

}  // namespace buckets_test
