// SPDX-License-Identifier: Apache-2.0
// What single layers compute. all_layers.cpp has what holds of each.
#include <cmath>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace results_test {

namespace nn = edl::nn;

// ---- flatten ----

TEST_CASE("flattening keeps elements and order") {
  lone_layer<nn::flatten> h{.l = {}, .in = {2, 3, 4}};
  CHECK(h.out == edl::shape{1, 1, 24});
  h.forward();
  CHECK(h.y == h.x);
}

// ---- scale ----

TEST_CASE("scale multiplies") {
  lone_layer<nn::scale> h{.l = {.factor = -0.25f}, .in = {1, 1, 2}, .batch = 1};
  h.x = {8, -2};
  h.forward();
  CHECK(h.y == std::vector<double>{-2, 0.5});
}

// ---- pad ----

TEST_CASE("places and channels of one value lie around a sample") {
  lone_layer<nn::pad> h{.l = {.before = {1, 0}, .after = {0, 2}, .value = 9}, .in = {1, 2, 2}, .batch = 2};
  CHECK(h.out == edl::shape{2, 4, 2});
  h.x = {1, 2, 3, 4, 5, 6, 7, 8};
  h.forward();
  CHECK(h.y == std::vector<double>{9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 9, 9, 9, 9,  //
                                   9, 9, 9, 9, 9, 9, 9, 9, 5, 6, 7, 8, 9, 9, 9, 9});
  lone_layer<nn::pad> c{.l = {.before = {0, 1}, .after = {1, 0}, .channels_before = 1, .channels_after = 2},
                        .in = {1, 2, 1},
                        .batch = 1};
  CHECK(c.out == edl::shape{2, 3, 4});
  c.x = {5, 6};
  c.forward();
  CHECK(c.y == std::vector<double>{0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(nn::pad{.channels_after = 1}.treats_each_place());
  CHECK(!nn::pad{.after = {0, 1}}.treats_each_place());
}

// ---- slice ----

TEST_CASE("a slice is some channels of each place") {
  lone_layer<std::remove_cvref_t<decltype(nn::slice{.first = 1, .count = 2})>> h{
      .l = nn::slice{.first = 1, .count = 2}, .in = {2, 1, 3}, .batch = 1};
  CHECK(h.out == edl::shape{2, 1, 2});
  h.x = {1, 2, 3, 4, 5, 6};
  h.forward();
  CHECK(h.y == std::vector<double>{2, 3, 5, 6});
}

TEST_CASE("a slice of places is those of each sample") {
  lone_layer<nn::slice> h{.l = {.first = 1, .count = 1, .along = nn::places}, .in = {1, 3, 2}, .batch = 2};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 4, 9, 10});
}

TEST_CASE("a slice that is not all within its axis does not fit") {
  for (nn::slice const s : {nn::slice{.first = 3, .count = 2}, nn::slice{.first = -1, .count = 2},
                            nn::slice{.first = 0, .count = 0}})
    CHECK(s.check({2, 2, 4}) == edl::fit::tensors_do_not_fit);
  CHECK(nn::slice{.first = 3}.check({2, 2, 4}) == edl::fit::fits);
  nn::slice const fifth{.first = 4, .along = nn::places};
  CHECK(fifth.check({2, 2, 9}) == edl::fit::tensors_do_not_fit);
  CHECK(fifth.wrong({2, 2, 9}).second == edl::shape{1, 4, 1});
  CHECK(fifth.check({5, 1, 1}) == edl::fit::fits);
  CHECK(nn::slice{.along = nn::places | nn::channels}.check({2, 2, 4}) == edl::fit::option_out_of_range);
}

// ---- reshape and transpose ----

TEST_CASE("other extents keep the elements in their order, and one extent is what is left") {
  CHECK(nn::reshape{.height = 2, .width = 0, .channels = 3}.output({1, 3, 4}) == edl::shape{2, 2, 3});
  CHECK(nn::reshape{.height = 0, .width = 2, .channels = 3}.output({1, 3, 4}) == edl::shape{2, 2, 3});
  CHECK(nn::reshape{}.output({1, 3, 4}) == edl::shape{1, 1, 12});
  for (nn::reshape const r : {nn::reshape{.width = 5}, nn::reshape{.height = 2, .width = 2, .channels = 2},
                              nn::reshape{.height = 0, .width = 0, .channels = 2},
                              nn::reshape{.height = -1, .width = -12, .channels = 1},
                              nn::reshape{.height = 0, .width = 24, .channels = 1}})
    CHECK(r.check({1, 3, 4}) == edl::fit::tensors_do_not_fit);
  lone_layer<nn::reshape> h{.l = {.width = 3}, .in = {1, 2, 3}, .batch = 1};
  CHECK(h.out == edl::shape{1, 3, 2});
  h.x = {1, 2, 3, 4, 5, 6};
  h.forward();
  CHECK(h.y == h.x);
}

TEST_CASE("places become channels") {
  lone_layer<nn::transpose> h{.l = {}, .in = {1, 2, 3}, .batch = 2};
  CHECK(h.out == edl::shape{1, 3, 2});
  h.x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12});
}

// ---- upsample ----

TEST_CASE("upsample repeats each place, exactly") {
  for (edl::extent const factor : {edl::extent{2}, edl::extent{1, 3}, edl::extent{3, 1}, edl::extent{1}}) {
    lone_layer<nn::upsample> h{
        .l = {.factor = factor}, .in = {2, 3, 5}, .batch = 2, .cpu = edl::basic_cpu<double>({.threads = 3})};
    CHECK(h.out == edl::shape{2 * factor.height, 3 * factor.width, 5});
    h.forward();
    auto const at = [](edl::shape s, int sample, int row, int column, int channel) {
      return std::size_t(((sample * s.height + row) * s.width + column) * s.channels + channel);
    };
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < h.out.height; ++i)
        for (int j = 0; j < h.out.width; ++j)
          for (int k = 0; k < 5; ++k)
            REQUIRE(h.y[at(h.out, s, i, j, k)] == h.x[at(h.in, s, i / factor.height, j / factor.width, k)]);
  }
}

// ---- factorization_machine ----

TEST_CASE("a factorisation machine adds up the products of all pairs of rows") {
  lone_layer<nn::factorization_machine> h{.l = {}, .in = {1, 3, 2}, .batch = 1};
  h.x = {1, 2, 3, 4, 5, 6};
  h.forward();
  CHECK(h.y.at(0) == doctest::Approx((3 + 8) + (5 + 12) + (15 + 24)));
}

// ---- cross ----

TEST_CASE("a cross layer multiplies its input by a linear map of what came before, and adds that") {
  lone_layer<nn::cross> h{.l = {.layers = 2}, .in = {1, 1, 2}, .batch = 1};
  h.x = {2, 3};
  h.parameters = {1, 0, 0, 1, /*second*/ 0, 1, 1, 0, /*biases*/ 0.5, 0, 0, 1};
  h.forward();
  // x_1 = (2 (2 + .5) + 2, 3 · 3 + 3) = (7, 12), x_2 = (2 · 12 + 7, 3 (7 + 1) + 12)
  CHECK(h.y.at(0) == doctest::Approx(31));
  CHECK(h.y.at(1) == doctest::Approx(36));
}

TEST_CASE("with vectors all inputs of a cross layer are multiplied by the same number") {
  lone_layer<nn::cross> h{.l = {.layers = 1, .vectors = true}, .in = {1, 1, 2}, .batch = 2};
  CHECK(h.counts.parameters == 4);
  h.x = {2, 3, -1, 1};
  h.parameters = {1, 2, 0.5, 0.25};
  h.forward();
  CHECK(h.y == std::vector<double>{2 * 8 + 0.5 + 2, 3 * 8 + 0.25 + 3, -1 * 1 + 0.5 - 1, 1 * 1 + 0.25 + 1});
}

// ---- compressed_interaction ----

TEST_CASE("a compressed interaction sums weighted products of vectors") {
  lone_layer<nn::compressed_interaction> h{.l = {.layers = 2, .maps = 1}, .in = {1, 2, 2}, .batch = 1};
  CHECK(h.counts.parameters == 2 * 2 * 1 + 1 * 2 * 1);
  h.x = {1, 2, /*second vector*/ 3, -1};
  h.parameters = {1, 0, 2, 0.5, /*second layer*/ 1, -1};
  h.forward();
  // x^1 = 1·(1, 4) + 2·(3, -2) + 0.5·(9, 1) = (11.5, 0.5); x^2 = x^1 ∘ (1, 2) - x^1 ∘ (3, -1) = (-23, 1.5)
  CHECK(h.y.at(0) == doctest::Approx(12));
  CHECK(h.y.at(1) == doctest::Approx(-21.5));
}

TEST_CASE("rows beyond those that are multiplied at a time are the same") {
  nn::compressed_interaction const l{.layers = 2, .maps = 2};
  lone_layer<nn::compressed_interaction> one{.l = l, .in = {1, 2, 3}, .batch = 1};
  lone_layer<nn::compressed_interaction> many{.l = l, .in = {1, 2, 3}, .batch = 200};
  for (std::size_t i = 0; i < one.x.size(); ++i) one.x[i] = 0.25 * double(i) - 1;
  for (std::size_t i = 0; i < many.x.size(); ++i) many.x[i] = one.x[i % one.x.size()];
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    one.parameters[i] = many.parameters[i] = 0.1 * double(i) - 0.3;
  one.forward();
  many.forward();
  for (std::size_t i = 0; i < many.y.size(); ++i)
    CHECK(many.y[i] == doctest::Approx(one.y[i % one.y.size()]));
}

// ---- positions ----

TEST_CASE("positions add the same rows to all samples") {
  lone_layer<nn::positions> h{.l = {}, .in = {1, 2, 2}, .batch = 2};
  CHECK(h.counts.parameters == 4);
  h.x = {0, 0, 0, 0, 10, 10, 10, 10};
  h.parameters = {1, 2, 3, 4};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 2, 3, 4, 11, 12, 13, 14});
}

TEST_CASE("of as many rows as the most places, shorter samples use the first") {
  lone_layer<nn::positions> h{.l = {.most = 4}, .in = {1, 2, 2}, .batch = 2};
  CHECK(h.counts.parameters == 8);
  h.x = {0, 0, 0, 0, 10, 10, 10, 10};
  h.parameters = {1, 2, 3, 4, 50, 60, 70, 80};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 2, 3, 4, 11, 12, 13, 14});
  CHECK(nn::positions{.most = 4}.check({1, 5, 2}) == edl::fit::option_out_of_range);
}

TEST_CASE("sines and cosines of the place are added") {
  lone_layer<nn::sinusoidal_positions> h{.l = {}, .in = {1, 3, 4}, .batch = 2};
  std::ranges::fill(h.x, 5.0);
  h.forward();
  for (std::size_t place = 0; place < 6; ++place) {
    double const p = double(place % 3);
    CHECK(h.y[place * 4] == doctest::Approx(5 + std::sin(p)));
    CHECK(h.y[place * 4 + 1] == doctest::Approx(5 + std::sin(p / 100)));
    CHECK(h.y[place * 4 + 2] == doctest::Approx(5 + std::cos(p)));
    CHECK(h.y[place * 4 + 3] == doctest::Approx(5 + std::cos(p / 100)));
  }
  CHECK(nn::sinusoidal_positions{}.check({1, 3, 5}) == edl::fit::option_out_of_range);
}

// ---- pools ----

TEST_CASE("the stride is the window's unless it is given") {
  CHECK(nn::max_pool{.window = 2}.output({5, 4, 3}) == edl::shape{2, 2, 3});
  CHECK(nn::max_pool{.window = 3, .stride = 1}.output({5, 4, 3}) == edl::shape{3, 2, 3});
  CHECK(nn::max_pool{.window = 2, .padding = nn::padding::same}.output({5, 4, 3}) == edl::shape{3, 2, 3});
  CHECK(nn::average_pool{.window = 2}.output({5, 4, 3}) == edl::shape{2, 2, 3});
  CHECK(nn::average_pool{.window = 3, .stride = 1}.output({5, 4, 3}) == edl::shape{3, 2, 3});
  CHECK(nn::average_pool{.window = 2, .padding = nn::padding::same}.output({5, 4, 3}) == edl::shape{3, 2, 3});
}

TEST_CASE("the greatest of each channel") {
  lone_layer<nn::global_max_pool> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 30, 3, 10};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 30});
}

TEST_CASE("the mean of each channel") {
  lone_layer<nn::global_average_pool> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 10, 3, 30};
  h.forward();
  CHECK(h.y == std::vector<double>{2, 20});
}

TEST_CASE("a pool over everything has one place") {
  auto const g = edl::nn::detail::pool_whole({5, 3, 2});
  CHECK(g.out == edl::shape{1, 1, 2});
  CHECK(g.window == edl::extent{5, 3});
  CHECK(g.before == edl::extent{0, 0});
}

// ---- dropout ----

TEST_CASE("equal streams drop equally, others do not; only training drops") {
  lone_layer<nn::dropout> h{.l = {.rate = 0.5f}, .in = {8, 8, 2}};
  h.forward();
  auto const first = h.y;
  h.forward();
  CHECK(h.y == first);
  h.random.step += 1;
  h.forward();
  CHECK(h.y != first);
  h.mode = edl::mode::prediction;
  h.forward();
  CHECK(h.y == h.x);
}

// ---- activations ----

TEST_CASE("silu is its input times the sigmoid of it") {
  lone_layer<nn::silu> h{.l = {}, .in = {1, 1, 3}, .batch = 1};
  h.x = {0, 2, -1e4};
  h.forward();
  CHECK(h.y.at(0) == 0);
  CHECK(h.y.at(1) == doctest::Approx(2 / (1 + std::exp(-2.0))));
  CHECK(h.y.at(2) == 0);
}

TEST_CASE("softplus does not overflow") {
  lone_layer<nn::softplus> h{.l = {}, .in = {1, 1, 4}, .batch = 1};
  h.x = {0, 1e4, -1e4, 1};
  h.forward();
  CHECK(h.y.at(0) == doctest::Approx(std::log(2.0)));
  CHECK(h.y.at(1) == 1e4);
  CHECK(h.y.at(2) == 0);
  CHECK(h.y.at(3) == doctest::Approx(std::log(1 + std::exp(1.0))));
}

TEST_CASE("elu goes to minus alpha") {
  lone_layer<nn::elu> h{.l = {.alpha = 0.5f}, .in = {1, 1, 3}, .batch = 1};
  h.x = {3, -1, -1e4};
  h.forward();
  CHECK(h.y.at(0) == 3);
  CHECK(h.y.at(1) == doctest::Approx(0.5 * (std::exp(-1.0) - 1)));
  CHECK(h.y.at(2) == -0.5);
}

TEST_CASE("softmax is over the channels of each place") {
  lone_layer<nn::softmax> h{.l = {}, .in = {2, 2, 3}, .batch = 1};
  h.forward();
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(h.y[3 * i] + h.y[3 * i + 1] + h.y[3 * i + 2] == doctest::Approx(1));
}

TEST_CASE("log_softmax is the logarithm of a share, and does not overflow") {
  lone_layer<nn::log_softmax> h{.l = {}, .in = {1, 2, 3}, .batch = 1};
  h.x = {1, 2, 3, 1e4, -1e4, 1e4};
  h.forward();
  double const sum = std::log(std::exp(1) + std::exp(2) + std::exp(3));
  for (std::size_t k = 0; k < 3; ++k) CHECK(h.y.at(k) == doctest::Approx(h.x.at(k) - sum));
  CHECK(h.y.at(3) == doctest::Approx(-std::log(2.0)));
  CHECK(h.y.at(4) == doctest::Approx(-2e4 - std::log(2.0)));
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

// ---- layer_norm ----

TEST_CASE("layer normalisation gives each place mean 0 and variance 1, then gamma and beta") {
  lone_layer<nn::layer_norm> h{.l = {.epsilon = 1e-12f}, .in = {1, 2, 2}, .batch = 1};
  h.x = {1, 3, -10, 10};
  h.parameters = {1, 2, 0, 5};
  h.forward();
  CHECK(h.y.at(0) == doctest::Approx(-1));
  CHECK(h.y.at(1) == doctest::Approx(7));
  CHECK(h.y.at(2) == doctest::Approx(-1));
  CHECK(h.y.at(3) == doctest::Approx(7));
}

TEST_CASE("a place whose channels are all equal is beta, and its gradient is finite") {
  lone_layer<nn::layer_norm> h{.l = {}, .in = {1, 1, 3}, .batch = 1};
  h.x = {4, 4, 4};
  h.parameters = {1, 1, 1, 0.5, 0, -0.5};
  h.forward();
  CHECK(h.y == std::vector<double>{0.5, 0, -0.5});
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

TEST_CASE("rms_norm gives each place the mean square 1, then gamma, and of zeros 0") {
  lone_layer<nn::rms_norm> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  h.x = {3, -4, 0, 0};
  h.parameters = {1, 2};
  h.forward();
  CHECK(h.y[0] == doctest::Approx(3 / std::sqrt(12.5)));
  CHECK(h.y[1] == doctest::Approx(-8 / std::sqrt(12.5)));
  CHECK(h.y[2] == 0);
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

// ---- group_norm ----

TEST_CASE("group normalisation gives each group of a sample mean 0 and variance 1, then gamma and beta") {
  lone_layer<nn::group_norm> h{.l = {.groups = 3, .epsilon = 1e-12f}, .in = {2, 2, 6}, .batch = 2};
  std::ranges::fill(h.parameters, 0);
  for (std::size_t k = 0; k < 6; ++k) h.parameters[k] = double(k) + 1;
  h.parameters[6 + 5] = 100;
  h.forward();
  for (std::size_t sample = 0; sample < 2; ++sample)
    for (std::size_t group = 0; group < 3; ++group) {
      double sum = 0, squares = 0;
      for (std::size_t place = 0; place < 4; ++place)
        for (std::size_t k = 2 * group; k < 2 * group + 2; ++k) {
          double const normal = (h.y[sample * 24 + place * 6 + k] - h.parameters[6 + k]) / h.parameters[k];
          sum += normal, squares += normal * normal;
        }
      CHECK(std::abs(sum) < 1e-10);
      CHECK(squares == doctest::Approx(8));
    }
}

TEST_CASE("with one group of one place it is layer normalisation") {
  lone_layer<nn::group_norm> h{.l = {.groups = 1}, .in = {1, 1, 7}};
  lone_layer<nn::layer_norm> other{.l = {}, .in = {1, 1, 7}};
  h.forward();
  other.forward();
  CHECK(greatest_difference(h.y, other.y) < 1e-12);
  h.backward();
  other.backward();
  CHECK(greatest_difference(h.dx, other.dx) < 1e-12);
}

TEST_CASE("a group that is constant is beta, and its gradient is finite") {
  lone_layer<nn::group_norm> h{.l = {.groups = 1}, .in = {1, 1, 3}, .batch = 1};
  h.x = {4, 4, 4};
  h.parameters = {1, 1, 1, 0.5, 0, -0.5};
  h.forward();
  CHECK(h.y == std::vector<double>{0.5, 0, -0.5});
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

// ---- padding ----

TEST_CASE("places of a window, by TensorFlow's rules and by PyTorch's") {
  struct {
    int in, window, stride;
    nn::padding padding;
    int places, before;
  } const cases[] = {
      {28, 3, 1, nn::padding::valid, 26, 0}, {28, 3, 1, nn::padding::same, 28, 1},
      {5, 3, 2, nn::padding::same, 3, 1},    {6, 3, 2, nn::padding::same, 3, 0},
      {6, 2, 2, nn::padding::same, 3, 0},    {5, 2, 2, nn::padding::valid, 2, 0},
      {3, 5, 1, nn::padding::same, 3, 2},    {7, 1, 3, nn::padding::same, 3, 0},
      {4, 4, 1, nn::padding::same, 4, 1},    {224, 7, 2, nn::padding::half, 112, 3},
      {6, 3, 2, nn::padding::half, 3, 1},    {7, 3, 2, nn::padding::half, 4, 1},
      {4, 2, 2, nn::padding::half, 3, 1},    {1, 7, 2, nn::padding::half, 1, 3},
  };
  for (auto const& c : cases) {
    auto const at = nn::place(c.in, c.window, c.stride, c.padding);
    CHECK(at.places == c.places);
    CHECK(at.before == c.before);
  }
}

// ---- conv2d ----

TEST_CASE("shapes and variables of a convolution") {
  nn::conv2d const valid{.filters = 8, .kernel = 3};
  CHECK(valid.output({28, 27, 3}) == edl::shape{26, 25, 8});
  CHECK(nn::count(valid, {28, 27, 3}).parameters == 3 * 3 * 3 * 8 + 8);
  nn::conv2d const same{
      .filters = 8, .kernel = {3, 5}, .stride = 2, .padding = nn::padding::same, .use_bias = false};
  CHECK(same.output({28, 27, 3}) == edl::shape{14, 14, 8});
  CHECK(nn::count(same, {28, 27, 3}).parameters == 3 * 5 * 3 * 8);
  nn::conv2d const grouped{.filters = 8, .kernel = 3, .groups = 4};
  CHECK(nn::count(grouped, {9, 9, 4}).parameters == 3 * 3 * 1 * 8 + 8);
}

TEST_CASE("TensorFlow's rule of same padding: the greater part comes after") {
  auto const g =
      nn::conv2d{.filters = 1, .kernel = 3, .stride = 2, .padding = nn::padding::same}.geometry({6, 5, 1});
  CHECK(g.before == edl::extent{0, 1});
  CHECK(g.out == edl::shape{3, 3, 1});
}

TEST_CASE("a kernel that is not trained is carried") {
  nn::conv2d const frozen{.filters = 3, .kernel = 2, .train_kernel = false};
  auto const n = nn::count(frozen, {4, 4, 2});
  CHECK(n.parameters == 3);
  CHECK(n.state == 2 * 2 * 2 * 3);
}

// ---- conv2d_transpose ----

TEST_CASE("shapes and variables of a transposed convolution") {
  nn::conv2d_transpose const valid{.filters = 8, .kernel = 3, .stride = 2};
  CHECK(valid.output({5, 4, 3}) == edl::shape{11, 9, 8});
  CHECK(nn::count(valid, {5, 4, 3}).parameters == 3 * 3 * 8 * 3 + 8);
  nn::conv2d_transpose const same{
      .filters = 8, .kernel = {3, 5}, .stride = 2, .padding = nn::padding::same, .use_bias = false};
  CHECK(same.output({5, 4, 3}) == edl::shape{10, 8, 8});
  CHECK(nn::count(same, {5, 4, 3}).parameters == 3 * 5 * 8 * 3);
  CHECK(nn::conv2d_transpose{.filters = 1, .kernel = 1, .stride = 3}.output({2, 2, 1}) ==
        edl::shape{6, 6, 1});
}

TEST_CASE("a transposed convolution puts the kernel down at each place, times the input there") {
  lone_layer<nn::conv2d_transpose> h{
      .l = {.filters = 1, .kernel = {1, 3}, .stride = {1, 2}}, .in = {1, 2, 1}, .batch = 1};
  h.x = {1, 10};
  h.parameters = {1, 2, 3, /*bias*/ 0.5};
  h.forward();
  CHECK(h.y == std::vector<double>{1.5, 2.5, 3 + 10 + 0.5, 20.5, 30.5});
}

TEST_CASE("it is what a convolution does to the gradient of its input") {
  nn::conv2d const forward{
      .filters = 3, .kernel = 3, .stride = 2, .padding = nn::padding::same, .use_bias = false};
  lone_layer<nn::conv2d> there{.l = forward, .in = {6, 4, 2}};
  there.forward();
  there.backward();
  lone_layer<nn::conv2d_transpose> back{
      .l = {.filters = 2, .kernel = 3, .stride = 2, .padding = nn::padding::same, .use_bias = false},
      .in = {3, 2, 3},
      .cpu = edl::basic_cpu<double>({.threads = 3})};
  back.x = there.dy;
  back.parameters = there.parameters;
  back.forward();
  CHECK(greatest_difference(back.y, there.dx) < 1e-12);
}

// ---- residual ----

TEST_CASE("a residual adds its input") {
  lone_layer<std::remove_cvref_t<decltype(nn::residual(nn::relu{}))>> h{
      .l = nn::residual(nn::relu{}), .in = {1, 1, 2}, .batch = 1};
  h.x = {3, -4};
  h.forward();
  CHECK(h.y == std::vector<double>{6, -4});
}

TEST_CASE("a body that needs its result no more has it where the sum will be") {
  nn::dense const body{.units = 3};
  auto const l = nn::residual(body);
  CHECK(nn::saved_by(l, {1, 1, 3}, 4) == 0);
  CHECK(nn::saved_by(nn::residual(nn::tanh{}), {1, 1, 3}, 4) > 0);
}

// ---- parallel ----

TEST_CASE("branches are multiplied, and each gets the product of the others") {
  lone_layer<std::remove_cvref_t<decltype(nn::product(nn::identity{}, nn::identity{}, nn::identity{}))>> h{
      .l = nn::product(nn::identity{}, nn::identity{}, nn::identity{}), .in = {1, 1, 2}, .batch = 1};
  h.x = {2, -3};
  h.forward();
  CHECK(h.y == std::vector<double>{8, -27});
  CHECK(nn::is_portable(nn::sum(nn::identity{}, nn::identity{}), {1, 1, 2}));
  CHECK_FALSE(nn::is_portable(nn::product(nn::identity{}, nn::identity{}), {1, 1, 2}));
}

TEST_CASE("channels stand one after the other, at every place") {
  lone_layer<std::remove_cvref_t<decltype(nn::concat(nn::identity{}, nn::max_pool{.window = 1}))>> h{
      .l = nn::concat(nn::identity{}, nn::max_pool{.window = 1}), .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{2, 1, 4});
  h.x = {1, 2, 3, 4};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 2, 1, 2, 3, 4, 3, 4});
}

TEST_CASE("branches that cannot be merged do not fit") {
  auto const halves = nn::concat(nn::identity{}, nn::max_pool{.window = 2});
  CHECK(halves.check({4, 4, 1}) == edl::fit::branches_differ_in_shape);
  CHECK(nn::sum(nn::dense{.units = 2}, nn::dense{.units = 3}).check({1, 1, 1}) ==
        edl::fit::branches_differ_in_shape);
  CHECK(nn::concat(nn::dense{.units = 2}, nn::dense{.units = 3}).check({1, 1, 1}) == edl::fit::fits);
}

// ---- batch_norm ----

TEST_CASE("without a gamma there is one variable less") {
  auto const n = nn::count(nn::batch_norm{.scale = false}, {3, 3, 7});
  CHECK(n.parameters == 7);
  CHECK(n.state == 14);
  CHECK(nn::batch_norm{.shift_gain = 0}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

TEST_CASE("only training moves the carried values") {
  lone_layer<nn::batch_norm> h{.l = {.momentum = 0.5f}, .in = {1, 1, 1}, .batch = 2};
  h.x = {1, 5};
  h.parameters = {1, 0};
  h.state = {1, 1};
  for (auto m : {edl::mode::evaluation, edl::mode::prediction}) {
    h.mode = m;
    h.forward();
    CHECK(h.state == std::vector<double>{1, 1});
    CHECK(h.y[0] == doctest::Approx(0));
  }
  h.mode = edl::mode::training;
  h.forward();
  CHECK(h.state == std::vector<double>{2, 2.5});
  CHECK(h.y[0] == doctest::Approx(-1).epsilon(1e-3));
}

TEST_CASE("variables of batch norm") {
  auto const n = nn::count(nn::batch_norm{}, {3, 3, 7});
  CHECK(n.parameters == 14);
  CHECK(n.state == 14);
  CHECK(nn::batch_norm{.momentum = 2}.check({1, 1, 1}) == edl::fit::option_out_of_range);
  CHECK(nn::batch_norm{.epsilon = 0}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

}  // namespace results_test
