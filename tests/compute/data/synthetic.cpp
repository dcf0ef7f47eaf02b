// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/synthetic.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"

namespace synthetic_test {

using namespace edl::data;
using support::failure, support::has;

TEST_CASE("the set is MNIST-like, and a pure function of seed and index") {
  synthetic_source const s{{.records = 250, .seed = 3, .records_per_shard = 100}};
  CHECK(s.shards() ==
        std::vector<shard>{{"synthetic-00000", 100}, {"synthetic-00001", 100}, {"synthetic-00002", 50}});
  auto const in = s.open();
  edl::example e;
  in->read(2, 49, e);
  std::array<float, 784> image{}, other{};
  CHECK(draw_digit(3, 249, image) == e.integer("label"));
  CHECK(std::ranges::equal(e.float_values("image"), image));
  draw_digit(4, 249, other);
  CHECK(other != image);
  draw_digit(3, 248, other);
  CHECK(other != image);
  for (float p : image) CHECK((p >= 0 && p <= 255 && p == float(int(p))));
  CHECK(has(failure([&] { in->read(2, 50, e); }), "no record 50"));
  CHECK(has(failure([&] { synthetic_source({.records = 0}); }), "at least one"));
}

TEST_CASE("pictures are the same digits in colours, and of CIFAR-10's size") {
  synthetic_source const s{{.records = 200, .seed = 3, .records_per_shard = 100, .pictures = true}};
  auto const in = s.open();
  edl::example e;
  std::array<float, 784> digit{};
  std::array<float, 3072> before{};
  for (std::uint64_t i = 0; i < 100; ++i) {
    in->read(1, i, e);
    auto const values = e.float_values("image");
    REQUIRE(values.size() == before.size());
    CHECK(e.integer("label") == draw_digit(3, 100 + i, digit));
    CHECK_FALSE(std::ranges::equal(values, before));
    std::ranges::copy(values, before.begin());
    // Where there is much ink, the colour is another one than beside it.
    auto const ink = std::size_t(std::ranges::max_element(digit) - digit.begin());
    std::size_t const y = ink / 28 + 2, x = ink % 28 + 2;
    float apart = 0;
    for (std::size_t c = 0; c < 3; ++c) apart += std::abs(values[(y * 32 + x) * 3 + c] - values[c]);
    CHECK(apart > 60);
    for (float p : values) REQUIRE((p >= 0 && p <= 255 && p == float(int(p))));
  }
  std::array<float, 100> small{};
  CHECK(has(failure([&] { draw_picture(1, 1, small); }), "3072 values"));
  CHECK(s.digest(0) != synthetic_source({.records = 200, .seed = 3, .records_per_shard = 100}).digest(0));
}

TEST_CASE("the digits can be told apart, but not by the mean image of their class" *
          doctest::test_suite("long")) {
  constexpr int n = 2000;
  std::vector<std::array<float, 784>> images(2 * n);
  std::vector<int> labels(2 * n);
  for (std::size_t i = 0; i < images.size(); ++i) labels[i] = draw_digit(9, i, images[i]);
  std::array<std::array<float, 784>, 10> means{};
  std::array<int, 10> counts{};
  for (std::size_t i = 0; i < n; ++i) {
    ++counts[std::size_t(labels[i])];
    for (std::size_t p = 0; p < 784; ++p) means[std::size_t(labels[i])][p] += images[i][p];
  }
  for (std::size_t c = 0; c < 10; ++c) {
    CHECK(counts[c] > n / 20);
    for (float& p : means[c]) p /= float(counts[c]);
  }
  auto const distance = [](auto const& a, auto const& b) {
    float sum = 0;
    for (std::size_t p = 0; p < 784; ++p) sum += (a[p] - b[p]) * (a[p] - b[p]);
    return sum;
  };
  int by_mean = 0, by_neighbour = 0, tried = 0;
  for (std::size_t i = n; i < 2 * n; i += 4, ++tried) {
    std::size_t mean = 0, nearest = 0;
    for (std::size_t c = 1; c < 10; ++c)
      if (distance(images[i], means[c]) < distance(images[i], means[mean])) mean = c;
    float least = std::numeric_limits<float>::max();
    for (std::size_t k = 0; k < n; ++k)
      if (float const d = distance(images[i], images[k]); d < least) least = d, nearest = k;
    by_mean += int(mean) == labels[i];
    by_neighbour += labels[nearest] == labels[i];
  }
  MESSAGE("by the mean image " << by_mean << ", by the nearest neighbour " << by_neighbour << " of "
                               << tried);
  CHECK(by_mean < tried * 9 / 10);
  CHECK(by_neighbour > tried * 8 / 10);
}

}  // namespace synthetic_test
