// SPDX-License-Identifier: Apache-2.0
#include "edl/core/partition.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

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

TEST_CASE("the largest arena does not overflow") {
  std::size_t const huge = ~std::size_t{0};
  CHECK(edl::partition(huge, 3, 0).last == huge / 3 / 16 * 16);
  CHECK(edl::partition(huge, 3, 2).last == huge);
}
