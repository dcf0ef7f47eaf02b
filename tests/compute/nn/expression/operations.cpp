// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/expression/operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"

namespace operations_test {

namespace nn = edl::nn;

/// A layer that is a function of its input.
template <auto F>
struct function_of {
  constexpr auto forward(auto x, auto&) const { return F(x); }
};

/// Gradients of whole pictures, of a length that is no multiple of a vector's, and of one element; and single
/// precision beside double.
template <auto F>
void check_function() {
  function_of<F> const l;
  for (edl::shape const in : {edl::shape{2, 3, 11}, {3, 2, 1}, {1, 1, 1}}) {
    int const batch = in.size() == 1 ? 1 : 3;
    check_gradients(l, in, edl::mode::training, batch);
    lone_layer<function_of<F>> h{.l = l, .in = in, .batch = batch};
    h.forward();
    h.backward();
    check_single(h);
  }
}

/// What forward makes of one sample of so many channels, and backward of a gradient of ones.
template <auto F, std::size_t N>
std::array<std::array<double, N>, 2> at(std::array<double, N> const& x) {
  lone_layer<function_of<F>> h{.l = {}, .in = {1, 1, int(N)}, .batch = 1};
  std::array<std::array<double, N>, 2> of{};
  h.x.assign(x.begin(), x.end());
  h.forward();
  h.dy.assign(h.y.size(), 1);
  h.backward();
  check_single(h);
  std::copy(h.y.begin(), h.y.end(), of[0].begin());
  std::copy(h.dx.begin(), h.dx.end(), of[1].begin());
  return of;
}

static_assert(!std::is_convertible_v<nn::axes, double>);  // x * nn::channels is a mistake

TEST_CASE("gradients of arithmetic") {
  check_function<[](auto x) { return (3 - x) * (x + 2) / (x * x + 0.5f) - x / 3 + 1 / (x + 4) - -x; }>();
}

TEST_CASE("gradients of functions of an element") {
  check_function<[](auto x) { return nn::exp(x) * nn::tanh(x) + nn::log(x * x + 0.1) * nn::sigmoid(x); }>();
  check_function<[](auto x) { return nn::sqrt(x + 2) + nn::erf(x) * nn::softplus(3 * x) + nn::expm1(x); }>();
  check_function<[](auto x) { return nn::pow(x + 2, 1.7) + nn::pow(2, x) + nn::pow(x + 3, x); }>();
  check_function<[](auto x) { return nn::gelu(x) + nn::silu(2 * x) * nn::normal_cdf(x); }>();
}

TEST_CASE("powers of numbers below 0, also in single precision") {
  check_function<[](auto x) { return nn::pow(x, 2) + 0.1 * nn::pow(x - 3, 5) + nn::pow(x - 4, -3); }>();
  check_function<[](auto x) { return nn::pow(x, 2.0) + 0.1 * nn::pow(x - 3, 5.0) + nn::pow(x - 4, -3.0); }>();
  check_function<[](auto x) { return nn::pow(x, 1) + nn::pow(x, 0) + nn::pow(x, 0.0); }>();
  check_function<[](auto x) { return nn::pow(x - 4, nn::where(x > 0, 2, -1)); }>();

  using vector = edl::detail::lanes<float>::type;
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (float const a :
       {-infinite, -1e30f, -16777217.0f, -3.0f, -1.5f, -1.0f, -0.0f, 0.0f, 0.7f, 1.0f, 2.0f, 1e30f, infinite})
    for (float const b : {-5.0f, -2.0f, -1.0f, -0.5f, 0.0f, 0.5f, 1.0f, 2.0f, 2.5f, 3.0f, 4.0f, 2e9f}) {
      CAPTURE(a);
      CAPTURE(b);
      float const right = std::pow(a, b), y = edl::detail::power((vector{} + 1.0f) * a, vector{} + b)[0];
      if (right != right)
        CHECK(y != y);
      else if (std::isinf(right) || std::abs(right) > 1e38f)
        CHECK((std::isinf(y) && (y > 0) == (right > 0)));
      else
        CHECK(double(y) == doctest::Approx(double(right)).epsilon(2e-5));
    }
}

TEST_CASE("the slope of a power at 0") {
  auto const slope = []<auto F> { return at<F>(std::array{0.0})[1][0]; };
  CHECK(slope.operator()<[](auto x) { return nn::pow(x, 0); }>() == 0);
  CHECK(slope.operator()<[](auto x) { return nn::pow(x, 1.0); }>() == 1);
  CHECK(slope.operator()<[](auto x) { return nn::pow(x, 2.0); }>() == 0);
  CHECK(slope.operator()<[](auto x) { return nn::pow(x, 3); }>() == 0);
  CHECK(slope.operator()<[](auto x) { return nn::pow(x, -2); }>() ==
        -std::numeric_limits<double>::infinity());
}

TEST_CASE("powers below 0 of infinite numbers have a slope of 0") {
  double const infinite = std::numeric_limits<double>::infinity();
  auto const [y, dx] = at<[](auto x) { return nn::pow(x, -1) + nn::pow(x, -2) + nn::pow(x, -3); }>(
      std::array{infinite, -infinite, 1.0});
  CHECK(y == std::array{0.0, 0.0, 3.0});
  CHECK(dx == std::array{0.0, 0.0, -6.0});
}

TEST_CASE("gradients of choices") {
  check_function<[](auto x) {
    return nn::where(x > 0.1, x * x, 3 * x) + nn::max(x, 0.3 - x) * nn::min(x, 0.2) + nn::abs(x) +
           nn::clamp(x, -0.5, 0.5) * (x <= 0.25) + nn::relu(x);
  }>();
}

TEST_CASE("where two are equal, each gets half of the gradient") {
  auto const [y, dx] =
      at<[](auto x) { return nn::max(x, 1) + nn::min(x, 0); }>(std::array{1.0, 0.0, 2.0, 0.5});
  CHECK(y == std::array{1.0, 1.0, 2.0, 1.0});
  CHECK(dx == std::array{0.5, 0.5, 1.0, 0.0});
}

TEST_CASE("the slope of an absolute value is 0 at 0, and of a NaN one") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  auto const slopes = at<[](auto x) { return nn::abs(x); }>(std::array{-2.0, 0.0, 3.0, nan})[1];
  CHECK(std::vector(slopes.begin(), slopes.end() - 1) == std::vector{-1.0, 0.0, 1.0});
  CHECK(slopes[3] != slopes[3]);
  CHECK(at<[](auto x) { return 1 / nn::abs(x); }>(std::array{-0.0})[0][0] > 0);
}

TEST_CASE("gradients of reductions over channels") {
  check_function<[](auto x) { return x * nn::sum(x, nn::channels) + nn::mean(nn::exp(x), nn::channels); }>();
  check_function<[](auto x) { return nn::variance(x, nn::channels) / (1 + nn::max(x, nn::channels)); }>();
  check_function<[](auto x) { return nn::softmax(x) * x + nn::log_softmax(x); }>();
}

TEST_CASE("gradients of reductions over places") {
  check_function<[](auto x) { return x * nn::mean(x, nn::places) - nn::min(x, nn::places); }>();
  check_function<[](auto x) { return nn::logsumexp(x, nn::places); }>();
  check_function<[](auto x) {
    return nn::softmax(x, nn::places | nn::channels) * nn::mean(x, nn::channels);
  }>();
  check_function<[](auto x) { return nn::mean(x / (2 + nn::mean(x, nn::places)), nn::channels); }>();
}

TEST_CASE("gradients of results that lack axes, and of what has none") {
  check_function<[](auto x) { return nn::sum(x, nn::channels); }>();
  check_function<[](auto x) { return nn::mean(x, nn::places) * 3; }>();
  check_function<[](auto x) { return nn::mean(x, nn::channels | nn::places); }>();
  CHECK(at<[](auto x) { return nn::stop_gradient(x); }>(std::array{0.0, 2.0})[1] == std::array{0.0, 0.0});
}

TEST_CASE("greatest elements that are equal share the gradient") {
  auto const [y, dx] =
      at<[](auto x) { return x + nn::max(x, nn::channels); }>(std::array{1.0, 4.0, 4.0, -1.0});
  CHECK(y == std::array{5.0, 8.0, 8.0, 3.0});
  CHECK(dx == std::array{1.0, 3.0, 3.0, 1.0});
}

TEST_CASE("equal least elements share the gradient, too") {
  auto const [y, dx] =
      at<[](auto x) { return x + nn::min(x, nn::channels); }>(std::array{1.0, 4.0, 1.0, 3.0});
  CHECK(y == std::array{2.0, 5.0, 2.0, 4.0});
  CHECK(dx == std::array{3.0, 1.0, 3.0, 1.0});
}

TEST_CASE("slopes where functions have none, or an infinite one") {
  double const infinite = std::numeric_limits<double>::infinity();
  auto const zero = std::array{0.0};
  CHECK(at<[](auto x) { return nn::relu(x); }>(zero)[1][0] == 0);
  CHECK(at<[](auto x) { return nn::clamp(x, 0, 1); }>(zero)[1][0] == 0.5);
  CHECK(at<[](auto x) { return nn::clamp(x, -1, 0); }>(zero)[1][0] == 0.5);
  CHECK(at<[](auto x) { return nn::clamp(x, 0, 0); }>(zero)[1][0] == 0.25);
  CHECK(at<[](auto x) { return nn::where(x > 0, nn::log(nn::where(x > 0, x, 1)), 0); }>(zero)[1][0] == 0);
  CHECK(at<[](auto x) { return nn::where(x, 2 * x, 3 * x); }>(zero)[1][0] == 3);
  CHECK(at<[](auto x) { return nn::where(true, 2 * x, 3) + nn::where(0.0, 1, x); }>(zero)[1][0] == 3);
  CHECK(at<[](auto x) { return nn::where(x >= 0, 2 * x, 3 * x); }>(zero)[1][0] == 2);
  CHECK(at<[](auto x) { return nn::sqrt(x); }>(zero) == std::array{zero, std::array{infinite}});
  CHECK(at<[](auto x) { return nn::log(x); }>(zero) ==
        std::array{std::array{-infinite}, std::array{infinite}});
  CHECK(at<[](auto x) { return nn::pow(x, 0.5); }>(zero) == std::array{zero, std::array{infinite}});
  CHECK(at<[](auto x) { return nn::norm(x); }>(zero) == std::array{zero, zero});
}

/// Exponentials times a number per row, which an option makes 0.
struct gained {
  double gain = 1;
  constexpr auto forward(auto x, auto&) const {
    auto const e = nn::exp(x - nn::stop_gradient(nn::max(x, nn::channels)));
    return e * (gain / nn::sum(e, nn::channels));
  }
};

TEST_CASE("exponentials times 0") {
  auto const [y, dx] =
      at<[](auto x) { return nn::exp(x) * nn::mean(x, nn::channels); }>(std::array{-1.0, 1.0});
  CHECK(y == std::array{0.0, 0.0});
  for (double const slope : dx) CHECK(slope == doctest::Approx(std::cosh(1.0)));
  for (double const gain : {0.0, 1.0, -2.0}) check_gradients(gained{.gain = gain}, {1, 2, 5});
  // Only a softmax's exponentials are read from its result.
  CHECK(nn::reads_y<nn::derived<function_of<[](auto x) { return nn::softmax(x); }>>>);
  CHECK(!nn::reads_y<nn::derived<gained>>);
}

TEST_CASE("a NaN is not lost") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  auto const check = [&]<auto F>(std::size_t nans) {
    CAPTURE(nans);
    for (std::size_t const where : {0, 1, 8}) {  // of a vector, and beyond the last whole one
      auto row = std::array{1.0, -2.0, 0.5, 3.0, -1.0, 0.0, 2.0, 1.0, 0.25};
      row[where] = nan;
      CHECK(std::ranges::count_if(at<F>(row)[0], [](double y) { return y != y; }) == int(nans));
    }
  };
  check.operator()<[](auto x) { return nn::max(x, 0); }>(1);
  check.operator()<[](auto x) { return nn::max(0, x); }>(1);
  check.operator()<[](auto x) { return nn::min(x, 0); }>(1);
  check.operator()<[](auto x) { return nn::min(0, x); }>(1);
  check.operator()<[](auto x) { return nn::clamp(x, -1, 1); }>(1);
  check.operator()<[](auto x) { return nn::relu(x); }>(1);
  check.operator()<[](auto x) { return nn::abs(x); }>(1);
  check.operator()<[](auto x) { return nn::max(x, nn::channels) + 0 * nn::relu(x); }>(9);
  check.operator()<[](auto x) { return nn::min(x, nn::channels) + 0 * nn::relu(x); }>(9);
  check.operator()<[](auto x) { return nn::max(x, nn::places); }>(1);
  check.operator()<[](auto x) { return nn::softmax(x); }>(9);
  check.operator()<[](auto x) { return nn::log_softmax(x); }>(9);
  check.operator()<[](auto x) { return nn::logsumexp(x, nn::places | nn::channels) + nn::softmax(x); }>(9);
  CHECK(at<[](auto x) { return nn::where(x > 9, 0, nn::argmax(x, nn::channels)); }>(
            std::array{1.0, nan, 1.0})[0] == std::array{3.0, 3.0, 3.0});
}

TEST_CASE("the logarithm of a sum of exponentials, where elements are infinite") {
  double const infinite = std::numeric_limits<double>::infinity();
  constexpr auto f = [](auto x) { return nn::where(x < 9, nn::logsumexp(x, nn::channels), 0); };
  CHECK(at<f>(std::array{-infinite, -infinite}) ==
        std::array{std::array{-infinite, -infinite}, std::array{0.0, 0.0}});
  CHECK(at<f>(std::array{-infinite, 3.0}) == std::array{std::array{3.0, 3.0}, std::array{0.0, 2.0}});
  CHECK(at<[](auto x) { return nn::stop_gradient(nn::logsumexp(x, nn::channels)) + nn::where(x > 9, 0, x); }>(
            std::array{infinite, 0.0})[0] == std::array{infinite, infinite});
}

TEST_CASE("the length of an axis is a number") {
  CHECK(at<[](auto x) { return x * x.channels() + x.channels() / x - nn::max(x.channels(), x); }>(
            std::array{1.0, 2.0}) == std::array{std::array{2.0, 3.0}, std::array{0.0, 1.0}});
  CHECK(at<[](auto x) { return x / (x.channels() * x.places() - -x.channels()); }>(std::array{4.0, 8.0})[0] ==
        std::array{1.0, 2.0});
}

TEST_CASE("gradients of norms") {
  check_function<[](auto x) { return x / (1 + nn::norm(x, nn::channels)) + nn::norm(x, nn::places); }>();
  check_function<[](auto x) { return nn::norm(x); }>();
}

TEST_CASE("the number of the greatest element, and one-hot of it") {
  auto const row = std::array{3.0, 7.0, 7.0, -1.0};
  auto const index = at<[](auto x) { return nn::argmax(x, nn::channels) + 0 * x; }>(row);
  CHECK(index[0] == std::array{1.0, 1.0, 1.0, 1.0});  // the first of equal ones
  CHECK(index[1] == std::array{0.0, 0.0, 0.0, 0.0});
  auto const hot = at<[](auto x) { return x * nn::one_hot(nn::argmax(x, nn::channels), x.channels()); }>(row);
  CHECK(hot[0] == std::array{0.0, 7.0, 0.0, 0.0});
  CHECK(hot[1] == std::array{0.0, 1.0, 0.0, 0.0});

  CHECK(at<[](auto x) { return nn::sum(x * nn::one_hot(1, x.channels()), nn::channels) + 0 * x; }>(row)[0] ==
        std::array{7.0, 7.0, 7.0, 7.0});

  // Of each place, and of each channel: rows share a vector, and have places of their own.
  check_function<[](auto x) { return x * nn::one_hot(nn::argmax(x, nn::channels), x.channels()); }>();
  check_function<[](auto x) { return x * nn::one_hot(nn::argmax(x, nn::places), x.places()); }>();
  check_function<[](auto x) { return x * nn::argmax(x, nn::channels) + nn::argmax(x, nn::places); }>();
  lone_layer<function_of<[](auto x) { return nn::argmax(x, nn::channels); }>> h{
      .l = {}, .in = {1, 2, 3}, .batch = 2};
  h.x = {0, 1, 2, 5, 4, 3, 1, 2, 0, -3, -2, -1};
  h.forward();
  CHECK(h.y == std::vector{2.0, 0.0, 1.0, 2.0});
  lone_layer<function_of<[](auto x) { return nn::argmax(x, nn::places); }>> p{
      .l = {}, .in = {1, 2, 3}, .batch = 2};
  p.x = h.x;
  p.forward();
  CHECK(p.y == std::vector{1.0, 1.0, 1.0, 0.0, 0.0, 0.0});
}

TEST_CASE("cumulative sums, and their gradients") {
  auto const row =
      at<[](auto x) { return nn::cumsum(x, nn::channels) * x; }>(std::array{3.0, -1.0, 2.0, 0.5});
  CHECK(row[0] == std::array{9.0, -2.0, 8.0, 2.25});
  CHECK(row[1] == std::array{7.5, 3.5, 6.5, 5.0});
  lone_layer<function_of<[](auto x) { return nn::cumsum(x, nn::places); }>> h{
      .l = {}, .in = {3, 1, 2}, .batch = 2};
  h.x = {1, 10, 2, 20, 3, 30, 5, 0, 6, 0, 7, 1};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 10, 3, 30, 6, 60, 5, 0, 11, 0, 18, 1});
  h.dy = {1, 0, 0, 0, 0, 2, 1, 0, 10, 0, 100, 0};
  h.backward();
  CHECK(h.dx == std::vector<double>{1, 2, 0, 2, 0, 2, 111, 0, 110, 0, 100, 0});

  // Of values that are stored, computed, smaller than a sample or the result, and one after another.
  check_function<[](auto x) { return nn::cumsum(x, nn::channels); }>();
  check_function<[](auto x) { return nn::tanh(nn::cumsum(nn::exp(x) * x, nn::places)) * x; }>();
  check_function<[](auto x) { return nn::softmax(nn::cumsum(nn::cumsum(x, nn::places), nn::channels)); }>();
  check_function<[](auto x) {
    return nn::cumsum(nn::mean(x, nn::places), nn::channels) * x +
           nn::mean(nn::cumsum(nn::sum(x, nn::channels), nn::places), nn::places);
  }>();
  check_function<[](auto x) {
    return nn::max(nn::cumsum(nn::softmax(x), nn::channels), nn::channels) - nn::cumsum(x * x, nn::places);
  }>();
}

/// Steps along an axis whose sums are what counts: of variables alone.
struct monotone {
  constexpr auto forward(auto x, auto& layer) const {
    auto const wide = layer.variable("wide", x.channels(), nn::constant{0.5});
    auto const tall = layer.variable("tall", x.places(), nn::constant{0.25});
    return nn::cumsum(nn::exp(wide), nn::channels) * x + nn::cumsum(tall, nn::places);
  }
};

TEST_CASE("gradients of cumulative sums of variables") {
  for (edl::shape const in : {edl::shape{2, 3, 11}, {3, 2, 1}, {1, 1, 1}}) check_gradients(monotone{}, in);
}

TEST_CASE("an empty batch") {
  lone_layer<
      function_of<[](auto x) { return nn::cumsum(nn::softmax(x) * nn::mean(x, nn::places), nn::places); }>>
      h{.l = {}, .in = {1, 2, 3}, .batch = 0};
  h.forward();
  h.backward();
  CHECK(h.y.empty());
  CHECK(h.dx.empty());
}

TEST_CASE("no gradient comes back through stop_gradient") {
  CHECK(at<[](auto x) { return x * nn::stop_gradient(x); }>(std::array{2.0, 3.0})[1] == std::array{2.0, 3.0});
}

TEST_CASE("a softmax is not put off by large numbers") {
  auto const y = at<[](auto x) { return nn::softmax(x); }>(std::array{1000.0, 1000.0, -1000.0})[0];
  CHECK(y == std::array{0.5, 0.5, 0.0});
}

}  // namespace operations_test
