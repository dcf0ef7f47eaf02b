// SPDX-License-Identifier: Apache-2.0
#include "edl/author/checked_view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "edl/core/error.hpp"

namespace checked_view_test {

namespace {

/// Values with something behind them that is to stay.
struct guarded {
  std::array<float, 24> memory;
  edl::checked_view<1> row{memory.data(), {6}, "pair"};
  edl::checked_view<3> picture{memory.data(), {2, 3, 1}};

  guarded() { memory.fill(7); }
  ~guarded() {
    CHECK(std::all_of(memory.begin() + 6, memory.end(), [](float x) { return x == 7; }));
  }
  std::vector<float> values() const { return {memory.begin(), memory.begin() + 6}; }
};

}  // namespace

TEST_CASE_FIXTURE(guarded, "values are written by place, by view, and all at once") {
  picture = xt::xtensor<float, 3>{{{1}, {2}, {3}}, {{4}, {5}, {6}}} * 2.0f;
  CHECK(values() == std::vector<float>{2, 4, 6, 8, 10, 12});
  picture(1, 2, 0) = 1, picture(0, 1, 0) = 2;
  CHECK(values() == std::vector<float>{2, 2, 6, 8, 10, 1});
  row = xt::xtensor<float, 1>{1, 2, 3, 4, 5, 6};
  row(0) = 9, row[1] = 8, row.flat(2) = 7;
  CHECK(values() == std::vector<float>{9, 8, 7, 4, 5, 6});
  xt::view(picture, 1, xt::all(), 0) = 3.0f;
  CHECK(values() == std::vector<float>{9, 8, 7, 3, 3, 3});
  xt::view(picture, 0, xt::all(), xt::all()) = xt::xtensor<float, 2>{{1}, {2}, {0}};
  CHECK(values() == std::vector<float>{1, 2, 0, 3, 3, 3});
  row *= 2.0f;
  std::iota(row.begin() + 3, row.end(), 1.0f);
  CHECK(values() == std::vector<float>{2, 4, 0, 1, 2, 3});
  CHECK(xt::sum(row)() == 12);
  std::ranges::sort(row);
  row.fill(1);
  CHECK(picture.size() == 6);
  edl::checked_view<1> const same = row;
  row = same;
  CHECK(values() == std::vector<float>(6, 1));
}

TEST_CASE_FIXTURE(guarded, "nothing is written past the end, by whichever way") {
  CHECK_THROWS_WITH_AS(row(6) = 0,
                       doctest::Contains("input 'pair' has no place 6, which `feed` writes: the "
                                         "network has 6 of a record"),
                       edl::data_error);
  CHECK_THROWS_AS(row(-1) = 0, edl::data_error);
  CHECK_THROWS_AS(row[5000] = 0, edl::data_error);
  CHECK_THROWS_AS(row.flat(6) = 0, edl::data_error);
  CHECK_THROWS_AS(picture(2, 0, 0) = 0, edl::data_error);
  CHECK_THROWS_AS(picture(0, 3, 0) = 0, edl::data_error);
  CHECK_THROWS_WITH_AS(picture(0, 0, 1) = 0, doctest::Contains("the network's input has no place 1"),
                       edl::data_error);
  CHECK_THROWS_AS(std::ranges::copy(std::vector<float>(20, 1), row.begin()), edl::data_error);
  CHECK_THROWS_AS((xt::view(picture, 5, xt::all(), xt::all()) = 1.0f), edl::data_error);
  CHECK_THROWS_AS((xt::view(row, 600) = 1.0f), edl::data_error);
}

TEST_CASE_FIXTURE(guarded, "values of another shape are refused, with both") {
  row.fill(7);
  CHECK_THROWS_WITH_AS((row = xt::xtensor<float, 1>{1, 2}),
                       "input 'pair' gets 2 values from `feed`, but the network takes 6", edl::data_error);
  CHECK_THROWS_WITH_AS(
      (picture = xt::xtensor<float, 3>({6, 1, 1}, 1.0f)),
      "the network's input gets 6 (6 × 1 × 1) values from `feed`, but the network takes 6 (2 × 3 × 1)",
      edl::data_error);
  CHECK_THROWS_AS((picture = xt::xtensor<float, 1>({6}, 1.0f)), edl::data_error);
  CHECK_THROWS_AS((row = xt::xtensor<float, 3>({6, 1, 1}, 1.0f)), edl::data_error);
  CHECK(values() == std::vector<float>(6, 7));
}

}  // namespace checked_view_test
