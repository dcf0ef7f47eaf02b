// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/pool_window.hpp"

#include <doctest/doctest.h>

namespace pool_window_test {

TEST_CASE("a pool over everything has one place") {
  auto const g = edl::nn::detail::pool_whole({5, 3, 2});
  CHECK(g.out == edl::shape{1, 1, 2});
  CHECK(g.window == edl::extent{5, 3});
  CHECK(g.before == edl::extent{0, 0});
}

}  // namespace pool_window_test
