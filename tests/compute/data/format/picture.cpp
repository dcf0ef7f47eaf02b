// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/picture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example_builder.hpp"

namespace picture_test {

using edl::picture, edl::resized, edl::shape;
using support::failure, support::has;

namespace {

edl::example record(std::vector<float> const& values, int height, int width) {
  edl::example e;
  edl::example_builder b{e};
  b.floats("image", values);
  b.integer("height", height);
  b.integer("width", width);
  return e;
}

std::vector<float> made(std::vector<float> const& values, shape from, shape to) {
  auto const t = resized(picture{from, values}, to);
  return {t.begin(), t.end()};
}

}  // namespace

TEST_CASE("the picture of a record has the shape that the record says") {
  auto const e = record({1, 2, 3, 4, 5, 6}, 1, 2);
  CHECK(edl::picture_of(e).extents == shape{1, 2, 3});
  CHECK(edl::picture_of(e).values[5] == 6);
  for (auto const& [h, w] : {std::pair{0, 2}, {4, 1}, {-1, -2}, {1 << 30, 1 << 30}})
    CHECK(
        has(failure([&] { edl::picture_of(record({1, 2, 3, 4, 5, 6}, h, w)); }), "are no picture of height"));
  CHECK(has(failure([&] { edl::picture_of(e, "photo"); }), "no floats as feature 'photo'"));
}

TEST_CASE("a picture of the same size stays, one that shrinks is averaged by area") {
  std::vector<float> const four{0, 10, 20, 30};
  CHECK(made(four, {2, 2, 1}, {2, 2, 1}) == four);
  CHECK(made(four, {2, 2, 1}, {1, 1, 1}) == std::vector<float>{15});
  CHECK(made(four, {1, 4, 1}, {1, 2, 1}) == std::vector<float>{5, 25});
  // Three to two: each takes one and a half places.
  auto const two = made({0, 3, 6}, {1, 3, 1}, {1, 2, 1});
  CHECK(two[0] == doctest::Approx(1));
  CHECK(two[1] == doctest::Approx(5));
}

TEST_CASE("a picture that grows is linear between centres, and constant at its edge") {
  auto const wide = made({0, 8}, {1, 2, 1}, {1, 4, 1});
  CHECK(wide == std::vector<float>{0, 2, 6, 8});
  CHECK(made({7}, {1, 1, 1}, {3, 2, 1}) == std::vector<float>(6, 7.0f));
  // One axis shrinks, the other grows.
  CHECK(made({0, 8, 4, 12}, {2, 2, 1}, {1, 4, 1}) == std::vector<float>{2, 4, 8, 10});
}

TEST_CASE("no value leaves the range of the picture, whatever the sizes are") {
  edl::random_stream const random(3, 0);
  for (int from = 1; from < 40; from += 3)
    for (int to = 1; to < 40; to += 4) {
      std::vector<float> values(std::size_t(from * from));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 255 * random.uniform(i);
      auto const t = made(values, {from, from, 1}, {to, to, 1});
      auto const [least, most] = std::ranges::minmax(t);
      CHECK(least >= -0.01f);
      CHECK(most <= 255.01f);
      auto const same = made(std::vector<float>(values.size(), 90), {from, from, 1}, {to, to, 1});
      CHECK(std::ranges::all_of(same, [](float v) { return v > 89.99f && v < 90.01f; }));
    }
}

TEST_CASE("grey becomes colour and colour grey, and nothing else") {
  CHECK(made({1, 2}, {1, 2, 1}, {1, 2, 3}) == std::vector<float>{1, 1, 1, 2, 2, 2});
  auto const grey = made({100, 0, 0, 0, 100, 0}, {1, 2, 3}, {1, 2, 1});
  CHECK(grey[0] == doctest::Approx(29.9));
  CHECK(grey[1] == doctest::Approx(58.7));
  CHECK(has(failure([] { made({1, 2}, {1, 1, 2}, {1, 1, 3}); }), "has 2 channels, and 3 are wanted"));
  std::vector<float> three(3);
  CHECK(has(failure([&] { edl::resize(picture{{1, 1, 1}, three}, {2, 2, 1}, three); }), "cannot be resized"));
  CHECK(has(failure([&] { edl::resize(picture{{1, 1, 1}, three}, {0, 2, 1}, {}); }), "cannot be resized"));
}

}  // namespace picture_test
