// SPDX-License-Identifier: Apache-2.0
#include "edl/base/http/client/backoff.hpp"

#include <doctest/doctest.h>

#include <set>

namespace backoff_test {

using edl::http::backoff;
using namespace std::chrono_literals;

TEST_CASE("pauses double up to the longest, drawn from their upper half") {
  std::set<std::int64_t> first;
  for (std::uint32_t seed = 1; seed < 10'000'000; seed += 50'000) {
    backoff b(100ms, 1s, seed);
    for (int round = 0; round < 2; ++round) {
      for (auto whole : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
        auto const p = b.next();
        CHECK(p >= whole / 2);
        CHECK(p <= whole);
        if (whole == 100ms) first.insert(p.count());
      }
      b.reset();
    }
  }
  CHECK(first.size() > 40);  // of the 51 that there are
}

}  // namespace backoff_test
