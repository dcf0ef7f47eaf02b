// SPDX-License-Identifier: Apache-2.0
// Covers also edl/author/id_list.hpp, edl/author/served_id_list.hpp, edl/author/served_ids.hpp.
#include "edl/author/sample.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>
#include <xtensor/xview.hpp>

#include "edl/author/model_learner.hpp"
#include "edl/core/error.hpp"
#include "edl/data/example_builder.hpp"
#include "edl/nn/layers.hpp"
#include "edl/nn/losses.hpp"

namespace nn = edl::nn;

namespace {

struct pictures {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 2, .width = 3, .channels = 1}, nn::dense{.units = 4});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<pictures>& into, edl::mode) {
    into.features = xt::reshape_view(record.floats("image"), {2, 3, 1}) / 2.0f;
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

struct letters {
  static constexpr auto network =
      nn::sequential(nn::ids{.count = 3}, nn::embedding{.vocabulary = 5, .width = 2},
                     nn::dense{.units = 5, .each_place = true});
  static constexpr nn::sequence_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<letters>& into, edl::mode) {
    auto const all = record.integer_values("letters");
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      into.features(i) = float(all[i]);
      into.label(i) = std::int32_t(all[i + 1]);
    }
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

TEST_CASE("classes of places are a view, and those that are not set are none") {
  auto const t = edl::author::make_trainer<letters>({.max_batch = 1, .seed = 1});
  edl::data::batch b = t->make_batch();
  auto const feed = [&](std::vector<std::int64_t> const& all) {
    edl::example e;
    edl::example_builder(e).integers("letters", all);
    t->feed(e, b, 0, edl::mode::training);
  };
  feed({1, 2, 3, 4});
  CHECK(b.features == std::vector<float>{1, 2, 3});
  CHECK(b.classes == std::vector<std::int32_t>{2, 3, 4});
  feed({1, 2});
  CHECK(b.classes == std::vector<std::int32_t>{2, -1, -1});
  CHECK_THROWS_WITH_AS(feed({1, 2, 5}), "label 5 is out of range: the network has outputs 0 to 4",
                       edl::data_error);
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
      "input 'tags': the record has more than 3 ids; weighted_ids{.most} of the network says "
      "how many fit",
      edl::data_error);
  CHECK_THROWS_AS(feed(of_several({7, 8}, 3, {6})), edl::data_error);  // the embedding has rows 0 to 5
  CHECK_THROWS_WITH_AS(feed(of_several({7, 8}, 3, {-1})),
                       "input 'tags': -1 is no id: ids are from 0 to 16777215", edl::data_error);
}

TEST_CASE("ids of a table beyond those that the input has are an error that names it") {
  std::array<std::uint64_t, 3> memory{};
  edl::served_ids const ids(memory, "words");
  ids[2] = 7, ids(0) = 5;
  CHECK(memory == std::array<std::uint64_t, 3>{5, 0, 7});
  CHECK_THROWS_WITH_AS(ids[3], doctest::Contains("input 'words' has ids 0 to 2 of a record"),
                       edl::data_error);
}
