// SPDX-License-Identifier: Apache-2.0
#include "edl/author/sample.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <vector>
#include <xtensor/xview.hpp>

#include "edl/author/model_learner.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/device/cpu.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metrics.hpp"
#include "edl/core/error.hpp"

namespace sample_test {

namespace nn = edl::nn;

namespace {

struct pictures {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 2, .width = 3, .channels = 1}, nn::dense{.units = 4});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<pictures>& into, edl::mode) {
    into.features = record.floats("image", {2, 3, 1}) / 2.0f;
    into.label = record.integer("label");
  }
};

struct numbers {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3});
  static constexpr nn::mean_squared_error loss{};
  static void feed(edl::example const& record, edl::sample<numbers>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.floats("y");
  }
};

struct several {
  static constexpr auto in =
      nn::inputs(nn::input<"pair">(nn::features{.count = 2}), nn::input<"job">(nn::ids{.count = 1}),
                 nn::input<"tags">(nn::weighted_ids{.most = 3}));
  static constexpr auto network =
      nn::sequential(in, nn::sum(in.from<"pair">(nn::dense{.units = 1}),
                                 in.from<"job">(nn::embedding_bag{.vocabulary = 4, .width = 1}),
                                 in.from<"tags">(nn::embedding_bag{.vocabulary = 6, .width = 1})));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<several>& into, edl::mode) {
    into.input<"pair">() = record.floats("pair");
    into.input<"job">()(0) = float(record.integer("job"));
    auto tags = into.input<"tags">();
    for (auto const id : record.integer_values("tags")) tags.add(id, 0.5f);
    into.label = 1;
  }
};

/// A label for each of three places.
struct sequence {
  static constexpr auto network = nn::sequential(nn::image{.height = 1, .width = 3, .channels = 2},
                                                 nn::conv2d{.filters = 4, .kernel = {1, 1}});
  static constexpr nn::sequence_cross_entropy loss{};
  using metrics = edl::metrics<edl::accuracy, edl::perplexity, edl::macro_f1<4>>;
  static void feed(edl::example const& record, edl::sample<sequence>& into, edl::mode) {
    for (std::size_t i = 0; i < 6; ++i) into.features(i / 6, i / 2, i % 2) = float(i);
    into.label = record.integer_values("labels");
  }
};

/// Words are masked by a named input, and the last ids as they come in.
struct masked_inputs {
  static constexpr nn::embedding rows{.vocabulary = 10, .width = 2};
  static constexpr auto in =
      nn::inputs(nn::input<"number">(nn::features{.count = 1}), nn::input<"words">(nn::ids{.count = 3}),
                 nn::input<"tags">(nn::ids{.count = 2}), nn::input<"more">(nn::ids{.count = 2}));
  static constexpr auto network = nn::sequential(
      in,
      nn::concat(nn::masked(in.mask<"words">(7), in.from<"words">(rows), nn::global_max_pool{}),
                 in.from<"tags">(rows, nn::flatten{}),
                 in.from<"more">(nn::masked(rows, nn::global_max_pool{})), in.from<"number">()),
      nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<masked_inputs>&, edl::mode) {}
};

struct masked_ids {
  static constexpr auto network = nn::sequential(
      nn::ids{.count = 4}, nn::masked(nn::embedding{.vocabulary = 10, .width = 2}, nn::global_max_pool{}),
      nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<masked_ids>&, edl::mode) {}
};

/// Points, of which those of one label belong together.
struct points {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3});
  static constexpr nn::triplet loss{};
  static void feed(edl::example const&, edl::sample<points>& into, edl::mode) {
    into.features.fill(0);
    into.label = 17;
  }
};

/// The label is the record's, and so is the weight, where there is one.
struct weighted {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3});
  static constexpr nn::sample_weighted loss{nn::softmax_cross_entropy{}};
  using metrics = edl::metrics<edl::mean_loss, edl::accuracy, edl::top_k<2>>;
  static void feed(edl::example const& record, edl::sample<weighted>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.integer("label");
    if (record.contains("weight")) into.weight = record.floating("weight");
  }
};
static_assert(edl::sample<weighted>::labels == 1);
static_assert(edl::model_traits<weighted>::metrics::totals == 6);

struct plain : weighted {
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<plain>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.integer("label");
  }
};

struct weighted_numbers {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 2});
  static constexpr nn::sample_weighted loss{nn::mean_squared_error{}};
  using metrics = edl::metrics<edl::mean_loss, edl::mae>;
  static void feed(edl::example const& record, edl::sample<weighted_numbers>& into, edl::mode) {
    into.features = record.floats("x");
    into.label = record.floats("y");
    into.weight = 0.25f;
  }
};

edl::example of_weight(std::int64_t label, std::vector<float> weight) {
  edl::example e;
  edl::example_builder b(e);
  b.floats("x", std::vector<float>{float(label) - 1, 2});
  b.integer("label", label);
  if (!weight.empty()) b.floats("weight", weight);
  return e;
}

edl::example of_labels(std::vector<std::int64_t> labels) {
  edl::example e;
  edl::example_builder b(e);
  std::ranges::copy(labels, b.integers("labels", labels.size()).begin());
  return e;
}

edl::example of_several(std::vector<float> pair, std::int64_t job, std::vector<std::int64_t> tags) {
  edl::example e;
  edl::example_builder b(e);
  b.floats("pair", pair);
  b.integer("job", job);
  b.integers("tags", tags);
  return e;
}

edl::example record(std::int64_t label) {
  edl::example e;
  edl::example_builder b(e);
  std::vector<float> const values{0, 2, 4, 6, 8, 10};
  b.floats("image", values);
  b.integer("label", label);
  return e;
}

}  // namespace

TEST_CASE("a class label and an image become a row of a batch") {
  auto const t = edl::author::make_trainer<pictures>({.max_batch = 2, .seed = 1});
  edl::data::batch b = t->make_batch();
  t->feed(record(3), b, 1, edl::mode::training);
  CHECK(b.feature_row(1)[5] == 5);
  CHECK(b.feature_row(0)[5] == 0);
  CHECK(b.class_row(1)[0] == 3);
}

TEST_CASE("a label that is no output is refused, however large; not in prediction") {
  auto const t = edl::author::make_trainer<pictures>({.max_batch = 1, .seed = 1});
  edl::data::batch b = t->make_batch();
  for (std::int64_t label : {-1ll, 4ll, 1ll << 32, (1ll << 32) + 1})
    CHECK_THROWS_AS(t->feed(record(label), b, 0, edl::mode::training), edl::data_error);
  CHECK_THROWS_WITH_AS(t->feed(record(4), b, 0, edl::mode::training),
                       "label 4 is out of range: the network has outputs 0 to 3; give it an output for each "
                       "class, 5 or more, or mend the record",
                       edl::misfit_error);
  CHECK_THROWS_WITH_AS(t->feed(record(-1), b, 0, edl::mode::training),
                       "label -1 is out of range: the network has outputs 0 to 3; number the classes from 0 "
                       "on, or mend the record",
                       edl::misfit_error);
  CHECK_NOTHROW(t->feed(record(-1), b, 0, edl::mode::prediction));
}

TEST_CASE("labels with one number per output are a view") {
  auto const t = edl::author::make_trainer<numbers>({.max_batch = 1, .seed = 1});
  edl::data::batch b = t->make_batch();
  edl::example e;
  edl::example_builder build(e);
  build.floats("x", std::vector<float>{1, 2});
  build.floats("y", std::vector<float>{3, 4, 5});
  t->feed(e, b, 0, edl::mode::training);
  CHECK(b.target_row(0)[2] == 5);
  CHECK(b.feature_row(0)[1] == 2);
}

TEST_CASE("a sequence has a label for each place, and those that a record lacks do not count") {
  auto const t = edl::author::make_trainer<sequence>({.max_batch = 2, .seed = 1});
  edl::data::batch b = t->make_batch();
  auto const labels = [&] { return std::vector<std::int32_t>(b.class_row(1).begin(), b.class_row(1).end()); };
  t->feed(of_labels({3, 0, 2}), b, 1, edl::mode::training);
  CHECK(labels() == std::vector<std::int32_t>{3, 0, 2});
  t->feed(of_labels({1}), b, 1, edl::mode::training);  // nothing is left of the record before
  CHECK(labels() == std::vector<std::int32_t>{1, -1, -1});
  t->feed(of_labels({-1, 2}), b, 1, edl::mode::training);
  CHECK(labels() == std::vector<std::int32_t>{-1, 2, -1});
  CHECK_THROWS_WITH_AS(
      t->feed(of_labels({0, 4}), b, 1, edl::mode::training),
      "label 4 of place 1 is out of range: the network has outputs 0 to 3 at each place, and a "
      "place that does not count is labelled -1",
      edl::data_error);
  CHECK_THROWS_AS(t->feed(of_labels({-2}), b, 1, edl::mode::training), edl::data_error);
  CHECK_THROWS_WITH_AS(t->feed(of_labels({0, 1, 2, 3}), b, 1, edl::mode::training),
                       doctest::Contains("more than 3 labels"), edl::data_error);
  CHECK_THROWS_WITH_AS(t->feed(of_labels({0, (1ll << 32) + 1}), b, 1, edl::mode::training),
                       doctest::Contains("label 4294967297 of place 1 is out of range"), edl::data_error);
}

TEST_CASE("a label that is no output is one for points, and its metric is the loss") {
  edl::author::model_learner<points> const learner(edl::cpu::open({}), {.max_batch = 1});
  CHECK(std::same_as<edl::model_traits<points>::metrics, edl::metrics<edl::mean_loss>>);
  edl::data::batch b = edl::data::make_batch(1, 2, 0, 1);
  learner.feed({}, b, 0, edl::mode::training);
  CHECK(b.class_row(0)[0] == 17);
}

TEST_CASE("named inputs are filled by name, and a list of ids has as many as its record") {
  auto const t = edl::author::make_trainer<several>({.max_batch = 2, .seed = 1});
  edl::data::batch b = t->make_batch();
  auto const row = [&] { return std::vector<float>(b.feature_row(0).begin(), b.feature_row(0).end()); };
  t->feed(of_several({7, 8}, 3, {5, 0}), b, 0, edl::mode::training);
  CHECK(row() == std::vector<float>{7, 8, 3, 5, 0, -1, 0.5, 0.5, 0});
  t->feed(of_several({7, 8}, 0, {}), b, 0, edl::mode::training);  // nothing is left of the record before
  CHECK(row() == std::vector<float>{7, 8, 0, -1, -1, -1, 0, 0, 0});
  t->feed(of_several({7, 8}, -1, {}), b, 0, edl::mode::training);  // no job, which a bag may lack
  CHECK(row()[2] == -1);
}

TEST_CASE("what does not fit a named input is refused") {
  auto const t = edl::author::make_trainer<several>({.max_batch = 1, .seed = 1});
  edl::data::batch b = t->make_batch();
  auto const feed = [&](edl::example const& e) { t->feed(e, b, 0, edl::mode::training); };
  CHECK_THROWS_AS(feed(of_several({7, 8, 9}, 3, {5})), edl::data_error);
  CHECK_THROWS_AS(feed(of_several({7, 8}, 4, {5})), edl::data_error);
  CHECK_THROWS_WITH_AS(
      feed(of_several({7, 8}, 3, {1, 2, 3, 4})),
      "input 'tags': the record has more than 3 ids; weighted_ids{.most} of the network sets the limit",
      edl::data_error);
  CHECK_THROWS_AS(feed(of_several({7, 8}, 3, {6})), edl::data_error);  // the embedding has rows 0 to 5
  CHECK_THROWS_WITH_AS(feed(of_several({7, 8}, 3, {-1})),
                       "input 'tags': -1 is not an id: ids are from 0 to 16777215", edl::data_error);
}

TEST_CASE("ids of a table beyond those that the input has are an error that names it") {
  std::array<std::uint64_t, 3> memory{};
  edl::served_ids const ids(memory, "words");
  ids[2] = 7, ids(0) = 5;
  CHECK(memory == std::array<std::uint64_t, 3>{5, 0, 7});
  CHECK_THROWS_WITH_AS(ids[3], doctest::Contains("input 'words' has ids 0 to 2 of a record"),
                       edl::data_error);
  ids = std::array<std::int64_t, 3>{1, 2, -1};
  CHECK(memory == std::array<std::uint64_t, 3>{1, 2, ~std::uint64_t(0)});
  CHECK_THROWS_WITH_AS((ids = std::array{1, 2}), "input 'words' has 3 ids of a record, and `feed` gives it 2",
                       edl::data_error);
  CHECK_THROWS_AS(std::ranges::copy(std::array{1, 2, 3, 4}, ids.begin()), edl::data_error);
}

TEST_CASE("ids that a mask looks at begin as padding, whatever the record before has left") {
  std::vector<float> row(8, 9), targets(1);
  edl::sample<masked_inputs> const of_inputs(row, targets);
  CHECK(std::vector(row.begin() + 1, row.begin() + 4) == std::vector<float>{7, 7, 7});
  CHECK(std::vector(row.begin() + 6, row.end()) == std::vector<float>{0, 0});
  for (std::size_t const other : {0, 4, 5}) CHECK(edl::author::is_unfed(row[other]));
  std::vector<float> ids(4, 9);
  edl::sample<masked_ids> const of_ids(ids, targets);
  CHECK(ids == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("a sample's weight stands behind its labels, and is 1 unless it is set") {
  auto const t = edl::author::make_trainer<weighted>({.max_batch = 2, .seed = 1});
  edl::data::batch b = t->make_batch();
  t->feed(of_weight(2, {0.5f}), b, 0, edl::mode::training);
  t->feed(of_weight(1, {}), b, 1, edl::mode::training);
  CHECK(b.targets == std::vector<float>{2, 0.5f, 1, 1});
  t->feed(of_weight(0, {}), b, 0, edl::mode::training);
  CHECK(b.target_row(0)[1] == 1);
  auto const n = edl::author::make_trainer<weighted_numbers>({.max_batch = 1, .seed = 1});
  b = n->make_batch();
  edl::example e;
  edl::example_builder build(e);
  build.floats("x", std::vector<float>{1, 2});
  build.floats("y", std::vector<float>{3, 4});
  n->feed(e, b, 0, edl::mode::training);
  CHECK(b.targets == std::vector<float>{3, 4, 0.25f});
}

TEST_CASE("a weight or a label that is none is refused; not in prediction") {
  auto const t = edl::author::make_trainer<weighted>({.max_batch = 1, .seed = 1});
  edl::data::batch b = t->make_batch();
  auto const feed = [&](std::int64_t label, float weight, edl::mode m = edl::mode::training) {
    t->feed(of_weight(label, {weight}), b, 0, m);
  };
  CHECK_THROWS_WITH_AS(feed(1, -0.5f), "weight -0.5 of a sample is not a number of 0 or more",
                       edl::data_error);
  CHECK_THROWS_AS(feed(1, std::numeric_limits<float>::infinity()), edl::data_error);
  CHECK_THROWS_AS(feed(1, std::numeric_limits<float>::quiet_NaN()), edl::data_error);
  for (std::int64_t label : {-1ll, 3ll, (1ll << 32) + 1}) CHECK_THROWS_AS(feed(label, 1), edl::data_error);
  CHECK_NOTHROW(feed(1, 0));
  CHECK_NOTHROW(feed(-1, -1, edl::mode::prediction));
}

TEST_CASE("samples train by their weights, and metrics but the loss count them alike") {
  auto const t = edl::author::make_trainer<weighted>({.max_batch = 3, .seed = 1});
  auto const all = edl::author::make_trainer<plain>({.max_batch = 3, .seed = 1});
  // What weights say: the first twice, the second not at all, of three samples.
  edl::data::batch b = t->make_batch(), twice = all->make_batch();
  t->feed(of_weight(0, {2}), b, 0, edl::mode::training);
  t->feed(of_weight(1, {0}), b, 1, edl::mode::training);
  t->feed(of_weight(2, {}), b, 2, edl::mode::training);
  for (int row = 0; row < 3; ++row)
    all->feed(of_weight(row < 2 ? 0 : 2, {}), twice, row, edl::mode::training);
  b.rows = twice.rows = 3;
  CHECK(t->train(b, 0, {}) == doctest::Approx(all->train(twice, 0, {})).epsilon(1e-6));
  for (std::size_t i = 0; i < t->gradients().size(); ++i)
    CHECK(t->gradients()[i] == doctest::Approx(all->gradients()[i]).epsilon(1e-5));

  std::vector<double> totals(6), alike(6);
  t->evaluate(b, totals);
  for (int row = 0; row < 3; ++row) all->feed(of_weight(row, {}), twice, row, edl::mode::evaluation);
  all->evaluate(twice, alike);
  CHECK(totals[0] != doctest::Approx(alike[0]));
  CHECK(std::vector(totals.begin() + 1, totals.end()) == std::vector(alike.begin() + 1, alike.end()));
}

}  // namespace sample_test
