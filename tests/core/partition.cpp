// SPDX-License-Identifier: Apache-2.0
#include "edl/core/partition.hpp"

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace partition_test {

TEST_CASE("parts are contiguous, even, and begin on cache lines") {
  for (std::size_t elements : {0u, 1u, 15u, 16u, 149u, 83466u, 1000003u})
    for (std::uint32_t parts : {1u, 2u, 3u, 7u, 64u}) {
      std::size_t at = 0;
      for (std::uint32_t i = 0; i < parts; ++i) {
        auto const part = edl::partition(elements, parts, i);
        CHECK(part.first == at);
        CHECK(part.first % 16 == 0);
        CHECK(part.size() <= elements / parts + 32);
        CHECK(part.size() + 32 >= elements / parts);
        at = part.last;
      }
      CHECK(at == elements);
    }
  static_assert(edl::partition(100, 2, 1) == edl::element_range{48, 100});
}

TEST_CASE("with borders an edge is the one that lies nearest, and parts may be empty") {
  constexpr std::array<std::size_t, 6> borders{0, 10, 60, 61, 99, 100};
  auto const edges = [&](std::uint32_t parts) {
    std::vector<std::size_t> all;
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < parts; ++i) {
      auto const part = edl::partition(100, parts, i, borders);
      CHECK(part.first == at);
      all.push_back(at = part.last);
    }
    return all;
  };
  CHECK(edges(1) == std::vector<std::size_t>{100});
  CHECK(edges(2) == std::vector<std::size_t>{60, 100});
  CHECK(edges(3) == std::vector<std::size_t>{10, 61, 100});
  CHECK(edges(8) == std::vector<std::size_t>{10, 10, 60, 60, 61, 61, 99, 100});
  std::array<std::size_t, 3> const middle{0, 50, 100};
  CHECK(edl::partition(100, 4, 0, middle) == edl::element_range{0, 0});  // 25 is as near to 0 as to 50
  CHECK(edl::partition(100, 4, 2, middle) == edl::element_range{50, 50});
}

TEST_CASE("the largest arena does not overflow") {
  std::size_t const huge = ~std::size_t{0};
  CHECK(edl::partition(huge, 3, 0).last == huge / 3 / 16 * 16);
  CHECK(edl::partition(huge, 3, 2).last == huge);
}

}  // namespace partition_test
