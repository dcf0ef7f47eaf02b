// SPDX-License-Identifier: Apache-2.0
#include "edl/core/digest.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <set>
#include <vector>

namespace digest_test {

TEST_CASE("each flipped bit is another number, wherever it is, and so is each length") {
  std::set<std::uint64_t> all;
  std::size_t different = 0;
  for (std::size_t size : {0, 1, 7, 8, 9, 31, 32, 33, 64, 100}) {
    std::vector<std::byte> block(size, std::byte{0});
    all.insert(edl::digest(block)), ++different;
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      block[bit / 8] ^= std::byte(1u << bit % 8);
      all.insert(edl::digest(block)), ++different;
      block[bit / 8] ^= std::byte(1u << bit % 8);
    }
  }
  CHECK(all.size() == different);
}

TEST_CASE("what stands before counts, and the order of blocks") {
  std::vector<float> a(40), b(9);
  std::iota(a.begin(), a.end(), 1.0f), std::iota(b.begin(), b.end(), 50.0f);
  auto const of = [](std::vector<float> const& x, std::uint64_t seed = 0) {
    return edl::digest(edl::view<float>(x), seed);
  };
  CHECK(of(a, of(b)) != of(b, of(a)));
  CHECK(of(a, of(b)) == of(a, of(b)));
  CHECK(of(a, 1) != of(a, 2));
}

}  // namespace digest_test
