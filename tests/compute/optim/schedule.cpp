// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/schedule.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>

namespace schedule_test {

namespace {

static_assert(edl::learning_rate_schedule<edl::cosine_decay>);
static_assert(edl::learning_rate_schedule<float (*)(std::uint64_t)>);
static_assert(!edl::learning_rate_schedule<float> && !edl::learning_rate_schedule<std::string>);

constexpr std::uint64_t forever = 1'000'000'000'000'000;

// What can be computed by the compiler is.
constexpr edl::piecewise_constant cifar10{.rate = 0.1f, .then = {{5000, 0.01f}, {15000, 0.001f}}};
static_assert(cifar10(0) == 0.1f && cifar10(4999) == 0.1f);
static_assert(cifar10(5000) == 0.01f && cifar10(14999) == 0.01f);
static_assert(cifar10(15000) == 0.001f && cifar10(forever) == 0.001f);
static_assert(edl::piecewise_constant{.rate = 3}(forever) == 3);
static_assert(edl::piecewise_constant{.rate = 3, .then = {{0, 4}}}(0) == 4);
static_assert(edl::constant_rate{0.5f}(forever) == 0.5f);

}  // namespace

TEST_CASE("exponential decay") {
  edl::exponential_decay const smooth{.rate = 0.8f, .factor = 0.25f, .steps = 100};
  CHECK(smooth(0) == 0.8f);
  CHECK(smooth(50) == 0.4f);
  CHECK(smooth(100) == 0.2f);
  CHECK(smooth(25) == doctest::Approx(0.8 * 0.7071067811865476));
  CHECK(smooth(forever) == 0);
  edl::exponential_decay const stairs{.rate = 0.8f, .factor = 0.25f, .steps = 100, .staircase = true};
  CHECK(stairs(99) == 0.8f);
  CHECK(stairs(100) == 0.2f);
  CHECK(stairs(299) == 0.05f);
}

TEST_CASE("triangle") {
  edl::triangle const schedule{.rate = 1, .peak = 4, .steps = 12, .start = 0.2f, .end = 0.6f};
  CHECK(schedule(0) == 0.2f);
  CHECK(schedule(2) == doctest::Approx(0.6));
  CHECK(schedule(4) == 1);
  CHECK(schedule(8) == doctest::Approx(0.8));
  CHECK(schedule(12) == 0.6f);
  CHECK(schedule(forever) == 0.6f);
  CHECK(edl::triangle{.rate = 2, .peak = 0, .steps = 2}(1) == 1);
}

TEST_CASE("cosine decay") {
  edl::cosine_decay const schedule{.rate = 1, .steps = 300, .end = 0.2f};
  CHECK(schedule(0) == 1);
  CHECK(schedule(100) == doctest::Approx(0.8));  // cos(π/3) = 1/2
  CHECK(schedule(150) == doctest::Approx(0.6));
  CHECK(schedule(200) == doctest::Approx(0.4));
  CHECK(schedule(300) == 0.2f);
  CHECK(schedule(forever) == 0.2f);
  CHECK(edl::cosine_decay{.rate = 1, .steps = 0}(0) == 0);
}

TEST_CASE("cosine restarts") {
  edl::cosine_restarts const even{.rate = 1, .steps = 300, .end = 0.2f};
  for (std::uint64_t const start : {0, 300, 600, 3'000'000}) {
    CHECK(even(start) == 1);
    CHECK(even(start + 100) == doctest::Approx(0.8));
    CHECK(even(start + 150) == doctest::Approx(0.6));
    CHECK(even(start + 299) < 0.21f);
  }
  edl::cosine_restarts const longer{.rate = 1, .steps = 100, .factor = 3};
  for (auto const& [start, length] : {std::pair{0, 100}, {100, 300}, {400, 900}, {1300, 2700}}) {
    CHECK(longer(std::uint64_t(start)) == 1);
    CHECK(longer(std::uint64_t(start + length / 2)) == doctest::Approx(0.5));
    CHECK(longer(std::uint64_t(start + length - 1)) < 0.01f);
  }
  CHECK(longer(99) == edl::cosine_decay{.rate = 1, .steps = 100}(99));
  float const far = edl::cosine_restarts{.rate = 1, .steps = 1, .factor = 1'000'000'000}(forever);
  CHECK((far >= 0 && far <= 1));
  CHECK(even(forever) <= 1);
  CHECK(longer(std::numeric_limits<std::uint64_t>::max()) <= 1);
  CHECK(edl::cosine_restarts{.rate = 1, .steps = 0, .end = 0.5f}(7) == 0.5f);
  CHECK(edl::cosine_restarts{.rate = 1, .steps = 4, .factor = 0}(6) == doctest::Approx(0.5));
}

TEST_CASE("polynomial decay, a straight line by default") {
  edl::polynomial_decay const line{.rate = 1, .steps = 4, .end = 0.5f};
  CHECK(line(0) == 1);
  CHECK(line(1) == 0.875f);
  CHECK(line(3) == 0.625f);
  CHECK(line(4) == 0.5f);
  CHECK(line(forever) == 0.5f);
  edl::polynomial_decay const square{.rate = 1, .steps = 4, .power = 2};
  CHECK(square(1) == doctest::Approx(0.5625));
  CHECK(square(4) == 0);
}

TEST_CASE("warmup scales another schedule, and is one itself") {
  edl::warmup<edl::constant_rate> const flat{.steps = 4, .then = {.rate = 0.8f}};
  CHECK(flat(0) == 0.2f);
  CHECK(flat(1) == 0.4f);
  CHECK(flat(3) == 0.8f);
  CHECK(flat(4) == 0.8f);
  CHECK(edl::warmup{0, edl::constant_rate{0.8f}}(0) == 0.8f);
  edl::warmup const decaying{2, edl::polynomial_decay{.rate = 1, .steps = 4}};
  CHECK(decaying(0) == 0.5f);
  CHECK(decaying(1) == 0.75f);
  CHECK(decaying(2) == 0.5f);
  CHECK(edl::warmup{2, [](std::uint64_t) { return 1.0; }}(0) == 0.5f);
}

TEST_CASE("a schedule says when evaluations reduce its rate") {
  constexpr edl::reduce_on_plateau<edl::cosine_decay> reduces{
      .then = {.rate = 1, .steps = edl::share_of_training(1)},
      .metric = "auc",
      .factor = 0.5f,
      .cooldown = 2};
  static_assert(edl::options_fit(reduces) && edl::has_share_of_training(reduces));
  CHECK(edl::in_training_of(reduces, 10)(10) == 0);
  constexpr auto found = edl::plateau_of(edl::warmup<edl::reduce_on_plateau<edl::cosine_decay>>{3, reduces});
  static_assert(found && found->metric == "auc" && found->factor == 0.5f && found->patience == 10 &&
                found->cooldown == 2 && found->min_delta == 0 && found->min_factor == 0);
  static_assert(!edl::plateau_of(edl::constant_rate{1}) &&
                !edl::plateau_of([](std::uint64_t) { return 1.f; }));

  using reduced = edl::reduce_on_plateau<edl::constant_rate>;
  auto const fits = [](reduced of) { return edl::options_fit(of); };
  CHECK(fits({.then = {1}, .metric = "auc"}));
  CHECK_FALSE(fits({.then = {1}, .metric = ""}));
  CHECK_FALSE(fits({.then = {-1}, .metric = "auc"}));
  for (float const bad : {0.0f, 1.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()})
    CHECK_FALSE(fits({.then = {1}, .metric = "auc", .factor = bad}));
  CHECK_FALSE(fits({.then = {1}, .metric = "auc", .patience = 0}));
  CHECK_FALSE(fits({.then = {1}, .metric = "auc", .min_delta = -1}));
  CHECK_FALSE(fits({.then = {1}, .metric = "auc", .min_factor = 2}));
  CHECK_FALSE(edl::options_fit(
      edl::reduce_on_plateau<reduced>{.then = {.then = {1}, .metric = "auc"}, .metric = "auc"}));
}

TEST_CASE("steps may be a share of the training") {
  using edl::share_of_training;
  constexpr edl::cosine_decay whole{.rate = 1, .steps = share_of_training(1), .end = 0.25f};
  static_assert(edl::options_fit(whole) && edl::has_share_of_training(whole));
  CHECK(edl::in_training_of(whole, 300)(299) > 0.25f);
  CHECK(edl::in_training_of(whole, 300)(300) == 0.25f);
  CHECK(edl::in_training_of(whole, 7)(7) == 0.25f);
  CHECK_THROWS_WITH_AS(whole(3), doctest::Contains("how many steps that has is unknown"), edl::usage_error);

  constexpr edl::warmup late{
      .steps = share_of_training(0.1),
      .then = edl::piecewise_constant{.rate = 1, .then = {{share_of_training(0.5), 0.5f}, {180, 0.1f}}}};
  auto const in200 = edl::in_training_of(late, 200);
  CHECK(in200(0) == 0.05f);
  CHECK(in200(20) == 1);
  CHECK(in200(99) == 1);
  CHECK(in200(100) == 0.5f);
  CHECK(in200(180) == 0.1f);

  auto const triangle = edl::in_training_of(
      edl::triangle{.rate = 1, .peak = share_of_training(0.25), .steps = share_of_training(1)}, 8);
  CHECK(triangle(2) == 1);
  CHECK(triangle(8) == 0);
  CHECK(edl::in_training_of(
            edl::exponential_decay{.rate = 1, .factor = 0.5f, .steps = share_of_training(0.5)}, 8)(4) ==
        0.5f);
  CHECK(edl::in_training_of(edl::polynomial_decay{.rate = 1, .steps = share_of_training(0.5)}, 8)(4) == 0);
  CHECK(edl::in_training_of(edl::cosine_restarts{.rate = 1, .steps = share_of_training(0.5)}, 8)(4) == 1);

  for (double const bad : {-0.1, 1.1, double(std::numeric_limits<float>::quiet_NaN())})
    CHECK_FALSE(edl::options_fit(edl::cosine_decay{.rate = 1, .steps = share_of_training(bad)}));
  CHECK_FALSE(edl::options_fit(edl::cosine_restarts{.rate = 1, .steps = share_of_training(0)}));
  CHECK_FALSE(edl::has_share_of_training(edl::cosine_decay{.rate = 1, .steps = 5}));
  CHECK_FALSE(edl::has_share_of_training([](std::uint64_t) { return 1.0f; }));
}

}  // namespace schedule_test
