// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/embedding_bag.hpp"

#include "compute/nn/harness.hpp"

namespace embedding_bag_test {

namespace nn = edl::nn;

namespace {

using bag = lone_layer<nn::embedding_bag>;

/// Rows 0, 10, 20, … of one column.
bag of(nn::embedding_bag l, edl::shape in, std::vector<double> x) {
  bag h{.l = l, .in = in, .batch = 1};
  h.x = std::move(x);
  for (std::size_t i = 0; i < h.parameters.size(); ++i) h.parameters[i] = 10 * double(i);
  h.forward();
  return h;
}

double result(nn::embedding_bag l, edl::shape in, std::vector<double> x) { return of(l, in, x).y.at(0); }

}  // namespace

TEST_CASE("rows are combined as TensorFlow combines those of sparse ids") {
  using enum nn::combiner;
  edl::shape const plain{1, 1, 3}, weighted{1, 2, 3};
  nn::embedding_bag l{.vocabulary = 5, .width = 1};
  CHECK(result(l, plain, {1, 4, 1}) == 60);
  CHECK(result(l, weighted, {1, 4, -1, 2, 0.5, 9}) == 40);
  l.combiner = mean;
  CHECK(result(l, plain, {1, 4, 1}) == doctest::Approx(20));
  CHECK(result(l, plain, {1, -1, -1}) == 10);
  CHECK(result(l, weighted, {1, 4, -1, 3, 1, 9}) == doctest::Approx(70 / 4.0));
  l.combiner = sqrtn;
  CHECK(result(l, plain, {1, 4, 1}) == doctest::Approx(60 / std::sqrt(3.0)));
  CHECK(result(l, weighted, {1, 4, -1, 3, 4, 9}) == doctest::Approx(190 / 5.0));
}

TEST_CASE("what is no id counts for nothing, and a sample without ids gets zeros") {
  for (auto const c : {nn::combiner::sum, nn::combiner::mean, nn::combiner::sqrtn}) {
    nn::embedding_bag l{.vocabulary = 5, .width = 1, .combiner = c};
    CHECK(result(l, {1, 1, 2}, {-1, -1}) == 0);
    CHECK(result(l, {1, 1, 2}, {2, -1}) == 20);
    CHECK(result(l, {1, 1, 2}, {2, 5}) == 20);  // no row of this number
    CHECK(result(l, {1, 2, 2}, {1, 2, 1, -1}) == (c == nn::combiner::sum ? -10
                                                  : c == nn::combiner::sqrtn
                                                      ? doctest::Approx(-10 / std::sqrt(2))
                                                      : doctest::Approx(0)));
    l.mask_zero = true;
    CHECK(result(l, {1, 1, 2}, {0, 3}) == 30);
  }
}

TEST_CASE("gradients of a bag go to the rows that were there, by their weights") {
  for (auto const c : {nn::combiner::sum, nn::combiner::mean, nn::combiner::sqrtn})
    for (auto const& [in, x] :
         {std::pair<edl::shape, std::vector<double>>{{1, 1, 3}, {1, 1, 4, 0, -1, 2}},
          std::pair<edl::shape, std::vector<double>>{{1, 2, 2}, {1, 3, 2, 0.5, 4, -1, -3, 0}}}) {
      bag h{.l = {.vocabulary = 5, .width = 3, .combiner = c}, .in = in, .batch = 2};
      h.x = x;
      h.value();
      h.backward();
      auto const gradients = h.gradients;
      CHECK(h.error(h.parameters, gradients) < 1e-7);
      CHECK(*std::ranges::max_element(h.dx) == 0);
      h.value();
      h.backward(false);
      CHECK(h.gradients == gradients);
    }
}

TEST_CASE("a bag without rows does not fit") {
  using enum edl::fit;
  CHECK(nn::embedding_bag{.vocabulary = 1, .width = 1}.check({1, 1, 1}) == fits);
  CHECK(nn::embedding_bag{.vocabulary = 0, .width = 1}.check({1, 1, 1}) == option_out_of_range);
  CHECK(nn::embedding_bag{.vocabulary = 1}.check({1, 1, 1}) == option_out_of_range);
}

}  // namespace embedding_bag_test
