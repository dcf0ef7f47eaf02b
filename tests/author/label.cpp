// SPDX-License-Identifier: Apache-2.0
#include "edl/author/label.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>

#include "edl/core/error.hpp"

namespace label_test {

TEST_CASE("a class is an integer of any type, and knows whether it is set") {
  edl::detail::class_label label;
  CHECK_FALSE(label.set());
  label = 7;
  CHECK(label.set());
  CHECK(label == 7);
  label = std::uint8_t(200);
  CHECK(label == 200);
  std::int64_t const large = std::int64_t(1) << 40;
  label = large;
  CHECK(std::int64_t(label) == large);
}

TEST_CASE("several labels are written where they lie, from whatever has as many") {
  std::array<float, 4> memory{9, 9, 9, 9};
  edl::detail::label_row<3> label(memory.data());
  using all = std::array<float, 4>;
  label = xt::xtensor<float, 1>{1, 2, 3} * 2.0f;
  CHECK(memory == all{2, 4, 6, 9});
  label = std::array{1.0, 2.0, 3.0};
  CHECK(memory == all{1, 2, 3, 9});
  label = std::vector<std::int64_t>{4, 5, 6};
  CHECK(memory == all{4, 5, 6, 9});
  label = {0, 1, 0};
  CHECK(memory == all{0, 1, 0, 9});
  label(2) = 8;
  CHECK(memory == all{0, 1, 8, 9});
  CHECK(label.size() == 3);
  CHECK_THROWS_AS(label(3) = 8, edl::data_error);
}

TEST_CASE("another number of labels is an error of the record, and nothing is written") {
  std::array<float, 3> memory{7, 7, 7};
  edl::detail::label_row<3> label(memory.data());
  char const* const said = "the model's feed made 2 labels of a record, the loss takes 3";
  CHECK_THROWS_WITH_AS(label = std::vector<float>(2), said, edl::data_error);
  CHECK_THROWS_WITH_AS((label = xt::xtensor<float, 1>{1, 2}), said, edl::data_error);
  CHECK_THROWS_AS(label = std::vector<float>(4), edl::data_error);
  CHECK(memory == std::array<float, 3>{7, 7, 7});
}

}  // namespace label_test
