// SPDX-License-Identifier: Apache-2.0
#include "edl/core/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace random_test {

using edl::random_stream;

TEST_CASE("Philox4x32-10 gives the published known answers") {
  // Random123's kat_vectors: key, counter → output.
  CHECK(random_stream{0, 0}.block(0) ==
        random_stream::block_type{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(random_stream{~0ull, ~0ull}.block(~0ull) ==
        random_stream::block_type{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(random_stream{0x299f31d0a4093822, 0x0370734413198a2e}.block(0x85a308d3243f6a88) ==
        random_stream::block_type{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream is a pure function of key, step and element") {
  random_stream const a{7, 3}, b{7, 3}, other_step{7, 4};
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CHECK(a.bits(i) == b.bits(i));
    same += a.bits(i) == other_step.bits(i);
  }
  CHECK(same == 0);
  CHECK(a.child(1).key != a.child(2).key);
}

TEST_CASE("uniform is in [0, 1) with mean 1/2, normal has mean 0 and variance 1") {
  random_stream const random{11, 0};
  double sum = 0, normal = 0, square = 0;
  int const n = 100000;
  for (int i = 0; i < n; ++i) {
    float const u = random.uniform(std::uint64_t(i));
    REQUIRE((u >= 0 && u < 1));
    double const z = random.child(1).normal(std::uint64_t(i));
    sum += u, normal += z, square += z * z;
  }
  CHECK(sum / n == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(normal / n) < 0.015);
  CHECK(square / n == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("shuffle permutes, by the seed") {
  std::vector<int> order(1000), again(1000), other(1000);
  std::iota(order.begin(), order.end(), 0);
  again = other = order;
  edl::shuffle(order, {1, 0});
  edl::shuffle(again, {1, 0});
  edl::shuffle(other, {2, 0});
  CHECK(order == again);
  CHECK(order != other);
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 1000; ++i) REQUIRE(order[std::size_t(i)] == i);
}

}  // namespace random_test
