// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/crowd.hpp"

#include <doctest/doctest.h>

namespace crowd_test {

using namespace std::chrono_literals;

TEST_CASE("a thread that loses its processor often is in a crowd, and stays so for a while") {
  edl::detail::crowd::clock::time_point const begin{1h};
  edl::detail::crowd c(begin);
  long lost = 0, asked = 0;
  auto const at = [&](auto after) { return c.here(begin + after, [&] { return ++asked, lost; }); };
  CHECK(!at(20ms));
  lost = 2;  // one in 10 ms is not often
  CHECK(!at(40ms));
  lost = 5;
  CHECK(!at(59ms));  // too soon to ask again
  CHECK(asked == 2);
  CHECK(at(60ms));
  CHECK(at(559ms));
  CHECK(!at(579ms));
  CHECK(!at(10s));
  lost = 1000;
  CHECK(at(10'020ms));
}

TEST_CASE("the system's count does not fall") {
  long const before = edl::detail::processors_lost();
  CHECK(before >= 0);
  CHECK(edl::detail::processors_lost() >= before);
}

}  // namespace crowd_test
