// SPDX-License-Identifier: Apache-2.0
// What a compiler says of a wrong model is seen by tests/rejects.
#include "edl/author/model_traits.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/author/run.hpp"
#include "edl/author/sample.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/compute/optim/schedule.hpp"

namespace model_traits_test {

namespace nn = edl::nn;

namespace {

constexpr auto some_network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 3});

struct smallest {
  static constexpr auto network = some_network;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<smallest>&, edl::mode) {}
};

struct regression {
  static constexpr auto network = some_network;
  static constexpr edl::nn::mean_squared_error loss{};
  static constexpr edl::adam optimizer{.learning_rate = 0.5f};
  static void feed(edl::example const&, edl::sample<regression>&, edl::mode) {}
};

struct spares_biases {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 2}, nn::layer_norm{}, nn::dense{.units = 2});
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.weight_decay = 0.5f, .decay_biases = false};
  static void feed(edl::example const&, edl::sample<spares_biases>&, edl::mode) {}
};

struct rated {
  struct hyperparameters {
    float body = 0.5f;
  };
  static constexpr auto network = some_network;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static auto rates(hyperparameters const& set) { return edl::rates{{"dense/kernel", set.body}}; }
  static void feed(edl::example const&, edl::sample<rated>&, edl::mode) {}
};

struct rated_alike {
  static constexpr auto network = some_network;
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static constexpr edl::rates rates{{"dense/kernel", 0.1f}, {"*", 2.0f}};
  static void feed(edl::example const&, edl::sample<rated_alike>&, edl::mode) {}
};

struct everything {
  static constexpr auto network = some_network;
  static constexpr edl::nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.amsgrad = true};
  static constexpr edl::piecewise_constant schedule{.rate = 0.5f, .then = {{100, 0.2f}}};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;
  static void feed(auto const&, auto&, edl::mode) {}
  static void on_predictions(edl::shape, int, edl::view<float>, int) {}
};

struct schedule_is_a_function {
  static constexpr auto network = some_network;
  static constexpr edl::nn::softmax_cross_entropy loss{.label_smoothing = 0.1f};
  static float schedule(std::uint64_t version) { return version < 10 ? 1.0f : 0.25f; }
  static void feed(edl::example const&, edl::sample<schedule_is_a_function>&, edl::mode) {}
};

// A user's own metric and loss, as plain as they can be.
struct count_samples {
  static constexpr char const* name = "samples";
  static constexpr std::size_t totals = 1;
  static void update(std::span<double> sums, edl::shape, int batch, edl::view<float>, edl::view<float>,
                     double) {
    sums[0] += batch;
  }
  static double value(edl::view<double> sums) { return sums[0]; }
};

struct own_loss {
  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(edl::shape) { return 3; }
  static constexpr bool valid(float, edl::shape) { return true; }
  double operator()(edl::shape, int, edl::view<float>, edl::view<float>, std::span<float>) const { return 0; }
};

struct own_parts {
  static constexpr auto network = some_network;
  static constexpr own_loss loss{};
  using metrics = edl::metrics<count_samples>;
  static void feed(edl::example const&, edl::sample<own_parts>&, edl::mode) {}
};

template <class Model>
using traits = edl::model_traits<Model>;

static_assert(std::same_as<traits<smallest>::label, std::int32_t>);
static_assert(std::same_as<traits<smallest>::metrics, edl::metrics<edl::accuracy>>);
static_assert(std::same_as<traits<smallest>::optimizer_type, edl::sgd>);
static_assert(!traits<smallest>::takes_predictions);
static_assert(std::same_as<traits<regression>::label, float>);
static_assert(std::same_as<traits<regression>::metrics, edl::metrics<edl::mean_loss>>);
static_assert(std::same_as<traits<everything>::metrics, edl::metrics<edl::accuracy, edl::auc>>);
static_assert(traits<everything>::takes_predictions);
static_assert(edl::detail::loss_of<schedule_is_a_function>({}).label_smoothing == 0.1f);
static_assert(std::same_as<traits<own_parts>::loss_type, own_loss>);

static_assert(edl::is_whole<smallest> && edl::is_whole<regression> && edl::is_whole<everything>);
static_assert(edl::is_whole<schedule_is_a_function> && edl::is_whole<own_parts>);

// Members are found by name, whatever they are; what they are is another question.
struct wrong {
  nn::softmax_cross_entropy loss{};
  static constexpr int optimizer = 0;
  using metric = edl::metrics<edl::accuracy>;
  void feed(edl::example const&, edl::sample<smallest>&, edl::mode) {}
};
static_assert(edl::detail::has_loss<wrong> && !edl::detail::some_loss<wrong>);
static_assert(edl::detail::has_optimizer<wrong> && !edl::detail::some_optimizer<wrong>);
static_assert(edl::detail::has_rates<rated_alike> && !edl::detail::has_rates<wrong>);
static_assert(edl::detail::has_feed<wrong> && !edl::detail::has_metrics<wrong>);

struct pictures {
  static constexpr auto network = nn::sequential(nn::image{.height = 4, .width = 4}, nn::dense{.units = 2});
};
static_assert(edl::detail::of_pictures<pictures> && !edl::detail::of_pictures<smallest>);
static_assert(edl::changes_pictures<decltype(edl::augment(edl::random_flip{}))>);
static_assert(!edl::changes_pictures<decltype(edl::augment())>);

constexpr auto broken = nn::sequential(nn::features{.count = 4}, nn::dense{});
static_assert(edl::detail::whole_network<smallest::network> && !edl::detail::whole_network<broken>);

// A head is measured by the labels of its own loss.
constexpr auto heads =
    nn::heads(nn::head<"a", 1>(nn::mean_squared_error{}), nn::head<"b", 2>(nn::softmax_cross_entropy{}));
static_assert(edl::detail::all_measure<edl::metrics<edl::of_head<heads, "a", edl::mse>>, float>);
static_assert(edl::detail::all_measure<edl::metrics<edl::of_head<heads, "b", edl::top_k<1>>>, float>);
static_assert(!edl::detail::all_measure<edl::metrics<edl::of_head<heads, "b", edl::mse>>, float>);
static_assert(!edl::detail::all_measure<edl::metrics<edl::of_head<heads, "c", edl::mse>>, float>);

// Two labels in one place: what needs classes does not take quantities, and the other way round.
static_assert(edl::metrics<edl::accuracy, edl::top_k<5>, edl::mean_loss>::accept<std::int32_t>);
static_assert(!edl::metrics<edl::accuracy, edl::top_k<5>>::accept<float>);
static_assert(!edl::metrics<edl::auc>::accept<std::int32_t>);

}  // namespace

TEST_CASE("the smallest model has plain sgd at its default rate") {
  edl::check_model<smallest>();
  auto const rule = traits<smallest>::make_rule();
  CHECK(rule.learning_rate(0) == 0.01f);
  CHECK(rule.learning_rate(1'000'000) == 0.01f);
  CHECK(rule.slots().empty());
}

TEST_CASE("an optimiser without a schedule keeps its own rate") {
  edl::check_model<regression>();
  auto const rule = traits<regression>::make_rule();
  CHECK(rule.learning_rate(7) == 0.5f);
  CHECK(rule.slots() == std::vector<std::string>{"m", "v"});
}

TEST_CASE("a model that spares biases has a rule that knows where they lie") {
  auto const program = edl::author::make_program<spares_biases>();
  REQUIRE(program.layout.parameters == 10);  // gamma (2), beta (2), kernel (2, 2), bias (2)
  std::vector<float> weights(10, 4), gradients(10, 0);
  program.rule->apply_at(0, weights, gradients, {}, 0.5f, 0);
  CHECK(weights == std::vector<float>{4, 4, 4, 4, 3, 3, 3, 3, 4, 4});
}

TEST_CASE("rates for parts are an object, or a function of hyperparameters") {
  static_assert(edl::is_whole<rated> && edl::is_whole<rated_alike>);
  auto program = edl::author::make_program<rated_alike>();
  REQUIRE(program.rates.parts().size() == 2);
  CHECK(program.rates.parts()[1].names == "*");
  CHECK(program.rates.parts()[1].factor == 2);
  program = edl::author::make_program<rated>();
  REQUIRE(program.rates.parts().size() == 1);
  CHECK(program.rates.parts()[0].names == "dense/kernel");
  CHECK(program.rates.parts()[0].factor == 0.5f);
  CHECK(edl::author::make_program<rated>({.body = 3}).rates.parts()[0].factor == 3);
  CHECK(edl::author::make_program<smallest>().rates.parts().empty());
}

TEST_CASE("a schedule is an object or a function") {
  edl::check_model<everything>();
  edl::check_model<schedule_is_a_function>();
  edl::check_model<own_parts>();
  CHECK(traits<everything>::make_rule().learning_rate(99) == 0.5f);
  CHECK(traits<everything>::make_rule().learning_rate(100) == 0.2f);
  CHECK(traits<everything>::make_rule().slots().size() == 3);
  CHECK(traits<schedule_is_a_function>::make_rule().learning_rate(9) == 1.0f);
  CHECK(traits<schedule_is_a_function>::make_rule().learning_rate(10) == 0.25f);
}

}  // namespace model_traits_test
