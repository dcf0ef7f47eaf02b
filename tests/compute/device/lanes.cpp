// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/lanes.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace lanes_test {

TEST_CASE("every element is visited once, whatever the number and the place in memory") {
  for (std::size_t n : {0u, 1u, 7u, 8u, 9u, 31u})
    for (std::size_t offset : {0u, 1u, 3u}) {
      std::vector<float> x(n + offset + 1), y(x.size(), -1);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i) - 10;
      edl::detail::by_lanes<float>(n, [&]<class V>(std::size_t i) {
        V const z = edl::detail::load<V>(x.data() + offset + i);
        edl::detail::store<V>(y.data() + offset + i, z > 0.0f ? z * 2.0f : V{});
      });
      for (std::size_t i = 0; i < y.size(); ++i)
        CHECK(y[i] == (i < offset || i >= offset + n ? -1 : x[i] > 0 ? 2 * x[i] : 0));
    }
}

}  // namespace lanes_test
