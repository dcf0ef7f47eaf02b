// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/memory_sums.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <numeric>
#include <utility>

namespace memory_sums_test {

using edl::element_range;
using edl::ps::memory_sums;

namespace {

/// A range of two blocks and a bit, and an array of fewer elements.
struct arrays {
  std::vector<float> values = std::vector<float>(2 * memory_sums::block + 5),
                     slots = std::vector<float>(4100);
  memory_sums sums{values.size()};

  arrays() {
    std::iota(values.begin(), values.end(), 1.0f);
    std::iota(slots.begin(), slots.end(), 0.5f);
    sums.take(views(), all());
  }
  std::vector<edl::view<float>> views() const { return {values, slots}; }
  element_range all() const { return {0, values.size()}; }
  auto changed() const { return sums.changed(views(), all()); }
};

void flip(float& x, int bit) { x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ (1u << bit)); }

}  // namespace

TEST_CASE("each flipped bit is found, in its block, and none where nothing has changed") {
  arrays a;
  CHECK_FALSE(a.changed());
  for (std::size_t const i : {0, 1, 15, 16, 4095, 4096, 8191, 8192, 8196})
    for (int bit = 0; bit < 32; ++bit) {
      flip(a.values[i], bit);
      auto const found = a.changed();
      REQUIRE(found);
      CHECK(found->first == i / memory_sums::block * memory_sums::block);
      CHECK(found->last == std::min(found->first + memory_sums::block, a.values.size()));
      flip(a.values[i], bit);
    }
  for (std::size_t const i : {0, 4095, 4096, 4099}) {
    flip(a.slots[i], 7);
    CHECK(a.changed()->first == i / memory_sums::block * memory_sums::block);
    flip(a.slots[i], 7);
  }
  CHECK_FALSE(a.changed());
}

TEST_CASE("two changes that leave a plain sum as it is are found") {
  arrays a;
  std::swap(a.values[16], a.values[32]);
  CHECK(a.changed());
  std::swap(a.values[16], a.values[32]);
  a.values[0] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(a.values[0]) + 2);
  a.values[64] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(a.values[64]) - 2);
  CHECK(a.changed());
}

TEST_CASE("what is written is told, and the rest is looked at as before") {
  arrays a;
  flip(a.values[0], 3), flip(a.values[5000], 3);
  a.sums.take(a.views(), {4200, 6000});
  CHECK_FALSE(a.sums.changed(a.views(), {4096, 8196}));
  CHECK(a.changed() == element_range{0, memory_sums::block});
}

}  // namespace memory_sums_test
