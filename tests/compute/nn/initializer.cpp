// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/initializer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace initializer_test {

namespace nn = edl::nn;

namespace {

edl::random_stream const stream{99, 0};

struct expected {
  nn::initializer how;
  double mean, stddev;
};

struct moments {
  double mean = 0, stddev = 0, most = 0;

  explicit moments(nn::initializer const& how, edl::extents const& of = {1, 1}) {
    std::vector<double> v(100000);
    nn::fill<double>(how, of, stream, 0, v);
    for (double e : v) mean += e / double(v.size());
    for (double e : v) stddev += (e - mean) * (e - mean) / double(v.size());
    stddev = std::sqrt(stddev);
    for (double e : v) most = std::max(most, std::abs(e - mean));
  }
};

}  // namespace

TEST_CASE("moments are those of the distributions") {
  edl::extents const of{200, 100};
  double const glorot = std::sqrt(2.0 / 300), he = std::sqrt(2.0 / 200);
  for (auto const& [how, mean, stddev] :
       {expected{nn::glorot_uniform{}, 0, glorot},
        {nn::glorot_normal{}, 0, glorot},
        {nn::he_uniform{}, 0, he},
        {nn::he_normal{}, 0, he},
        {nn::uniform{.low = 1, .high = 3}, 2, 2 / std::sqrt(12.0)},
        {nn::normal{.mean = -1, .stddev = 0.5}, -1, 0.5},
        {nn::truncated_normal{.mean = 3, .stddev = 2}, 3, 2 * 0.87962566}}) {
    moments const m(how, of);
    CAPTURE(how.index());
    CHECK(std::abs(m.mean - mean) < 0.02 * stddev);
    CHECK(m.stddev == doctest::Approx(stddev).epsilon(0.01));
  }
  CHECK(moments(nn::constant{.value = 4}).mean == doctest::Approx(4));
}

TEST_CASE("what is bounded stays within its bounds") {
  CHECK(moments(nn::glorot_uniform{}, {2, 4}).most <= 1.01);
  CHECK(moments(nn::truncated_normal{.mean = 0, .stddev = 1}).most <= 2.01);
  CHECK(moments(nn::normal{.mean = 0, .stddev = 1}).most > 3);
}

TEST_CASE("any part of a variable is the same as in the whole") {
  for (nn::initializer const& how :
       {nn::initializer{nn::glorot_uniform{}}, nn::initializer{nn::he_normal{}},
        nn::initializer{nn::normal{}}, nn::initializer{nn::uniform{}},
        nn::initializer{nn::constant{.value = 2}}, nn::initializer{nn::pass_through{}}}) {
    std::vector<float> whole(101), part(37);
    nn::fill<float>(how, {3, 5}, stream, 0, whole);
    for (std::size_t first : {0, 1, 2, 3, 50, 64}) {
      nn::fill<float>(how, {3, 5}, stream, first, part);
      CHECK(std::ranges::equal(part, std::span(whole).subspan(first, part.size())));
    }
  }
}

TEST_CASE("filters that pass channels on") {
  std::vector<double> w(3 * 3 * 2 * 5);  // two channels, five filters
  nn::fill<double>(nn::pass_through{}, {3, 3, 2, 5}, stream, 0, w);
  double most = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    std::size_t const filter = i % 5, channel = i / 5 % 2, place = i / 10;
    if (filter < 2)
      CHECK(w[i] == (place == 4 && filter == channel ? 1 : 0));
    else
      most = std::max(most, std::abs(w[i]));
  }
  CHECK(most <= 1 / std::sqrt(18.0));
  CHECK(most > 0.8 / std::sqrt(18.0));
  std::vector<double> narrow(3 * 2);  // more channels than filters: a matrix
  nn::fill<double>(nn::pass_through{}, {3, 2}, stream, 0, narrow);
  CHECK(narrow == std::vector<double>{1, 0, 0, 1, 0, 0});
}

TEST_CASE("fans, as Keras counts them") {
  nn::fans const conv(edl::extents{3, 5, 16, 32}), dense(edl::extents{784, 10}), bias(edl::extents{7});
  CHECK(conv.in == 3 * 5 * 16);
  CHECK(conv.out == 3 * 5 * 32);
  CHECK(dense.in == 784);
  CHECK(dense.out == 10);
  CHECK(bias.in == 7);
  CHECK(bias.out == 7);
}

}  // namespace initializer_test
