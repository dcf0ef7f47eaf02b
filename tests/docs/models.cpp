// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/models.md, each where a model has it. The build cuts them out of the document, in its
// order.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "edl/author/model_learner.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/edl.hpp"
#include "models-count.inc"

namespace nn = edl::nn;

static_assert(snippets == 28, "docs/models.md has another number of snippets than this file uses");

namespace {

struct text {
#include "models-1.inc"
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<text>& into, edl::mode) {
    for (std::size_t i = 0; i < 64; ++i) into.features(i) = float(i);
    into.label = record.integer("label");
  }
};

constexpr auto block =
#include "models-2.inc"
    ;

struct drawn {
#include "models-3.inc"
};
static_assert(edl::model<drawn::network, edl::cpu>::output == edl::shape{1, 1, 10});

#include "models-11.inc"
#include "models-12.inc"
#include "models-13.inc"
#include "models-14.inc"
#include "models-15.inc"
#include "models-18.inc"
#include "models-19.inc"
#include "models-20.inc"
#include "models-24.inc"
#include "models-25.inc"
#include "models-4.inc"
#include "models-5.inc"
#include "models-6.inc"
#include "models-7.inc"
#include "models-8.inc"
#include "models-9.inc"

struct picture {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 8, .width = 8, .channels = 3},
                     nn::conv2d{.filters = 24, .kernel = 2, .train_kernel = false}, block, channel_scale{},
                     trained_swish{}, own_dropout{}, running_norm{}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
#include "models-16.inc"
#include "models-17.inc"
  using metrics = edl::metrics<edl::accuracy, error_rate>;
  static void feed(edl::example const& record, edl::sample<picture>& into, edl::mode) {
    into.features = record.floats("image", {8, 8, 3});
    into.label = record.integer("label");
  }
#include "models-10.inc"
#include "models-21.inc"
#include "models-26.inc"
#include "models-27.inc"
};

struct ranged {
  static constexpr auto network = nn::sequential(nn::features{.count = 3}, nn::dense{.units = 1});
  static constexpr nn::sample_weighted loss{outside{}};
  using metrics = edl::metrics<edl::mean_loss>;
  static void feed(edl::example const& record, edl::sample<ranged>& into, edl::mode) {
    into.features = record.floats("of", {3});
    into.label = {record.floating("from"), record.floating("to")};
    into.weight = record.floating("weight");
  }
};

struct tuned {
  struct hyperparameters {
    float body = 0.1f;
  };
  static constexpr auto network = picture::network;
  static constexpr nn::softmax_cross_entropy loss{};
#include "models-22.inc"
  static void feed(edl::example const&, edl::sample<tuned>&, edl::mode) {}
};

void picture::on_predictions(edl::shape, int, edl::view<float>, int) {}

namespace mnist {
constexpr auto network = nn::sequential(nn::image{.height = 28, .width = 28, .channels = 1},
                                        nn::conv2d{.filters = 8}, nn::relu{}, nn::dense{.units = 10});
}
#include "models-28.inc"

}  // namespace

TEST_CASE_TEMPLATE("the models of the documents can be trained", Model, text, picture, ranged) {
  edl::author::model_learner<Model> const learner(edl::cpu::open({}), {});
  CHECK(learner.facts().output.size() == (std::is_same_v<Model, ranged> ? 1 : 2));
}

struct planned {
#include "models-23.inc"
};

TEST_CASE("the schedule of the documents warms up for a twentieth of the training, and ends with it") {
  auto const of = edl::in_training_of(planned::schedule, 1000);
  CHECK(of(0) == doctest::Approx(0.002));
  CHECK(of(50) == doctest::Approx(0.0994).epsilon(0.001));
  CHECK(of(1000) == 0);
}

TEST_CASE("the model with hyperparameters in the documents is trained with those that a user sets") {
  edl::train::program const p = edl::author::make_program<digits>();
  REQUIRE(p.set.size() == 4);
  edl::train::hyperparameters set = p.set;
  edl::train::set(set, edl::train::read_settings("rate=0.01;halving=200"));
  edl::train::program const other = p.with(set);
  CHECK(p.rule->learning_rate(0) == 0.002f);
  CHECK(other.rule->learning_rate(0) == 0.01f);
  CHECK(other.rule->learning_rate(200) == doctest::Approx(0.005f));
}

TEST_CASE("the hyperparameters of the documents reach the optimiser, a head's weight and the augmentation") {
  edl::train::program const p = edl::author::make_program<pets>();
  REQUIRE(p.set.size() == 4);
  auto values = p.set;
  edl::train::set(values, edl::train::read_settings("decay=0.5;age=0;slope=0.3;moved=8"));
  CHECK(p.with(values).metric_names == p.metric_names);
  auto const set = edl::author::with_values<pets::hyperparameters>(values);
  CHECK(edl::detail::optimizer_of<pets>(set).weight_decay == 0.5f);
  CHECK(edl::detail::loss_of<pets>(set).of<"age">().weight.resolve({}, "it", 0, 1) == 0);
  CHECK(std::get<0>(edl::detail::augmentation_of<pets>(set).all).padding == 8);
  CHECK(edl::author::model_learner<pets>(edl::cpu::open({}), {}, set).facts().output.size() == 4);
}

TEST_CASE("parts of the documents' models have rates of their own") {
  auto const dense = [](edl::train::program const& p) {
    auto const parts = edl::rates_of_parts(p.layout, p.rates, "");
    REQUIRE_FALSE(parts.elements.empty());
    CHECK(parts.elements.front().factor == 0.1f);
    return parts.elements.back().factor;
  };
  CHECK(dense(edl::author::make_program<picture>()) == 2);
  CHECK(dense(edl::author::make_program<tuned>()) == 0.1f);
}

TEST_CASE("the model of several inputs in the documents can be trained") {
  edl::author::model_learner<wide_and_deep> const learner(edl::cpu::open({}), {});
  CHECK(learner.facts().input.size() == 1 + 1 + 2 * 20);
  CHECK(learner.facts().output.size() == 1);
}

TEST_CASE("the model of a table's columns in the documents feeds them as ids of one vocabulary") {
  edl::author::model_learner<wages> const learner(edl::cpu::open({}), {});
  CHECK(wages::ids.size() == 6 + 4 + 100);
  edl::example record;
  edl::example_builder made(record);
  made.floating("age", 52.2f);
  made.integer("hours", 40);
  made.bytes("education", "Masters");
  made.bytes("occupation", "Sales");
  made.integer("label", 1);
  edl::data::batch b;
  b.capacity = 1;
  b.feature_size = learner.facts().input.size();
  b.features.resize(b.feature_size);
  b.target_size = 1;
  b.targets.resize(1);
  learner.feed(record, b, 0, edl::mode::training);
  CHECK(b.features[0] == doctest::Approx(1));
  CHECK(b.features[1] == 3);
  CHECK(b.features[2] == 6 + 2);
  CHECK(b.features[3] >= 6 + 4);
}

TEST_CASE("the transformer of the documents learns each character's successor") {
  edl::author::model_learner<letters> const learner(edl::cpu::open({}), {});
  CHECK(learner.facts().output == edl::shape{1, 256, 256});
  edl::example record;
  edl::example_builder(record).bytes("text", std::string(256, 'a') + "b");
  auto b = edl::data::make_batch(1, 256, 0, 256);
  learner.feed(record, b, 0, edl::mode::training);
  CHECK(b.features[255] == 'a');
  CHECK(b.classes[254] == 'a');
  CHECK(b.classes[255] == 'b');
}

TEST_CASE("the classifier of the documents fills up short sentences, and cuts its minibatches") {
  edl::author::model_learner<sentence> learner(edl::cpu::open({}), {.max_batch = 1});
  CHECK(learner.facts().output == edl::shape{1, 1, 2});
  edl::example record;
  edl::example_builder made(record);
  made.bytes("text", "not  good");
  made.integer("label", 0);
  auto b = edl::data::make_batch(1, 64, 0, 1);
  std::ranges::fill(b.features, 17.0f);  // of the record before
  learner.feed(record, b, 0, edl::mode::training);
  CHECK(b.features[0] == float(1 + sentence::words("not")));
  CHECK(b.features[1] == float(1 + sentence::words("good")));
  CHECK(std::ranges::count(b.features, 0.0f) == 62);
  CHECK(learner.forward(b.features, 1, edl::mode::evaluation, 0).size() == 2);
}

TEST_CASE("the model of the documents' tables names rows by any 64-bit number") {
  edl::author::model_learner<clicks> const learner(edl::cpu::open({}), {});
  CHECK(learner.facts().embeddings.tables == std::vector<edl::table_shape>{{"page", 16}});
  edl::example record;
  edl::example_builder made(record);
  made.bytes("page", "/index.html");
  std::ranges::copy(std::array{-1, 7}, made.integers("read", 2).begin());
  made.floating("click", 1);
  auto b = edl::data::make_batch(1, learner.facts().input.size(), 1, 0, learner.facts().embeddings.ids);
  learner.feed(record, b, 0, edl::mode::training);
  CHECK(b.ids[0] == edl::features::fingerprint("/index.html"));
  CHECK(b.ids[1] == ~std::uint64_t{0});
  CHECK(b.weights[2] == 1);
  CHECK(b.weights[3] == 0);
}

TEST_CASE("the model of several heads in the documents has a label for each") {
  edl::author::model_learner<visit> const learner(edl::cpu::open({}), {});
  CHECK(learner.facts().output.size() == 6);
  auto const with_stars = [](int stars) {
    edl::example record;
    edl::example_builder made(record);
    std::ranges::fill(made.floats("numbers", 4), 0.5f);
    made.integer("page", 7);
    made.integer("click", 1);
    made.integer("stars", stars);
    return record;
  };
  edl::data::batch b;
  b.capacity = 1;
  b.feature_size = learner.facts().input.size();
  b.features.resize(b.feature_size);
  b.target_size = learner.facts().labels;
  b.targets.resize(b.target_size);
  learner.feed(with_stars(4), b, 0, edl::mode::training);
  CHECK(b.targets == std::vector<float>{1, 4});
  CHECK_THROWS_AS(learner.feed(with_stars(5), b, 0, edl::mode::training), edl::data_error);
}

TEST_CASE("the function of the documents takes predictions") {
  CHECK(edl::detail::has_on_predictions<picture>);
  CHECK((&picture::on_predictions != nullptr));
}

TEST_CASE("the hook of the documents stops when the accuracy is good") {
  CHECK(picture::on_evaluation({.metrics = {{"accuracy", 0.98}}}).empty());
  CHECK(picture::on_evaluation({.metrics = {{"accuracy", 0.995}}}) == "the accuracy is above 0.99");
  CHECK(picture::on_evaluation({.metrics = {{"loss", 1}}}).empty());
  CHECK(edl::detail::good_on_step<picture>);
}

TEST_CASE("the metric of the documents is the share of errors") {
  using rate = edl::metrics<error_rate>;
  std::array<double, 2> sums{};
  std::array<float, 6> const outputs{1, 0, 0, 1, 1, 0};
  std::array<std::int32_t, 3> const labels{0, 1, 1};
  rate::update<float, std::int32_t>(sums, {1, 1, 2}, 3, outputs, labels, 0);
  CHECK(rate::values(sums)[0].second == doctest::Approx(1.0 / 3));
}
