// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/trainers/cpu_trainer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "app/words.hpp"
#include "compute/device/draw.hpp"
#include "edl/author/model_learner.hpp"
#include "edl/author/run.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/core/error.hpp"

namespace cpu_trainer_test {

namespace nn = edl::nn;

namespace {

constexpr edl::shape input{3, 4, 2};

template <class Model>
struct pictures {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 3, .width = 4, .channels = 2}, nn::conv2d{.filters = 4, .kernel = 2},
                     nn::relu{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  using metrics = edl::metrics<edl::mean_loss>;
  static void feed(edl::example const&, edl::sample<Model>&, edl::mode) {}
};

struct plain : pictures<plain> {};

struct averaged : pictures<averaged> {
  static constexpr auto evaluation = edl::test_time_augmentation(
      edl::test_time_view{.weight = 2}, edl::test_time_view{.mirrored = true},
      edl::test_time_view{.weight = 0.5, .down = -1, .right = 1, .mirrored = true});
};

struct doubtful : pictures<doubtful> {
  static constexpr auto evaluation = averaged::evaluation.of_least_confident(0.5f);
};

struct mirrored : pictures<mirrored> {
  static constexpr auto evaluation = edl::test_time_augmentation(edl::test_time_view{.mirrored = true});
};

struct deep : pictures<deep> {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 3, .width = 4, .channels = 2},
                     nn::repeat<8>(nn::sequential(nn::tanh{}, nn::dropout{.rate = 0.1f}, nn::sigmoid{})),
                     nn::dense{.units = 3});
};

template <class Model>
struct subject {
  std::unique_ptr<edl::worker::trainer> trainer;
  edl::data::batch batch;

  explicit subject(std::vector<float> const& features,
                   edl::worker::trainer_options const& o = {.max_batch = 2})
      : trainer(edl::author::make_trainer<Model>(o)), batch(trainer->make_batch()) {
    std::ranges::copy(features, batch.features.begin());
    batch.rows = 2;
    batch.classes = {0, 2};
    edl::random_stream const random{3, 0};
    std::uint64_t i = 0;
    for (float& v : trainer->variables()) v = random.uniform(i++) - 0.5f;
  }

  std::vector<float> predict() {
    auto const outputs = trainer->predict(batch);
    return {outputs.begin(), outputs.end()};
  }
};

/// Both pictures, each shown like this.
std::vector<float> shown(std::vector<float> const& features, edl::placement const& how) {
  std::vector<float> to(features.size());
  for (std::size_t at = 0; at < features.size(); at += input.size())
    edl::place(input, edl::view<float>(features).subspan(at, input.size()), how,
               std::span(to).subspan(at, input.size()));
  return to;
}

/// Ids of variable length, one class for all or one for each. Lengths may be planned.
template <class Model, bool Tags, bool Planned>
struct sentences {
  static constexpr nn::ids start = Planned ? nn::ids{.count = 16, .lengths = {4, 8}} : nn::ids{.count = 16};
  static constexpr nn::embedding rows{.vocabulary = 9, .width = 4};
  static constexpr auto network = [] {
    if constexpr (Tags)
      return nn::sequential(start, nn::masked(rows, nn::bidirectional(nn::lstm{.units = 3})),
                            nn::dense{.units = 3, .each_place = true});
    else
      return nn::sequential(start,
                            nn::masked(rows, nn::residual(nn::attention{.heads = 2}), nn::global_max_pool{}),
                            nn::dense{.units = 3});
  }();
  static constexpr auto loss = [] {
    if constexpr (Tags)
      return nn::sequence_cross_entropy{};
    else
      return nn::softmax_cross_entropy{};
  }();
  using metrics = edl::metrics<edl::mean_loss, edl::accuracy>;
  static void feed(edl::example const& record, edl::sample<Model>& into, edl::mode) {
    auto const ids = record.integers("ids");
    for (std::size_t i = 0; i < ids.size(); ++i) into.features(i) = float(ids(i));
    if constexpr (Tags) {
      auto const tags = record.integers("tags");
      for (std::size_t i = 0; i < tags.size(); ++i) into.label(i) = tags(i);
    } else {
      into.label = record.integer("class");
    }
  }
};
struct of_16_ids : sentences<of_16_ids, false, false> {};
struct of_planned_ids : sentences<of_planned_ids, false, true> {};
struct of_16_tags : sentences<of_16_tags, true, false> {};
struct of_planned_tags : sentences<of_planned_tags, true, true> {};

/// A record of so many ids.
edl::example sentence(int length, int tags) {
  edl::example e;
  edl::example_builder made(e);
  auto const ids = made.integers("ids", std::size_t(length));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 1 + std::int64_t(i * i) % 8;
  auto const labels = made.integers("tags", std::size_t(tags));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int64_t(i) % 3;
  made.integer("class", length % 3);
  return e;
}

/// All that a trainer says of two sentences.
template <class Model>
std::vector<float> all_of(int longer) {
  auto const t = edl::author::make_trainer<Model>({.max_batch = 2, .seed = 4});
  auto b = t->make_batch();
  b.rows = 2;
  for (int row = 0; row < 2; ++row)
    t->feed(sentence(row == 0 ? 2 : longer, row == 0 ? 2 : longer), b, row, edl::mode::training);
  std::vector<float> all{float(t->train(b, 1, {}))};
  all.insert(all.end(), t->gradients().begin(), t->gradients().end());
  std::vector<double> totals(t->totals());
  t->evaluate(b, totals);
  all.insert(all.end(), totals.begin(), totals.end());
  auto const outputs = t->predict(b);
  // Of places that are padding, predictions mean nothing.
  std::size_t const a_place = outputs.size() == 6 ? 0 : 3;
  for (std::size_t i = 0; i < 2; ++i) {
    auto const own = outputs.subspan(i * outputs.size() / 2,
                                     a_place == 0 ? 3 : a_place * (i == 0 ? 2u : std::size_t(longer)));
    all.insert(all.end(), own.begin(), own.end());
  }
  CHECK((outputs.size() == 6 || outputs.size() == 2 * 16 * 3));
  return all;
}

}  // namespace

TEST_CASE("evaluation and prediction average what the network says on several views at a picture") {
  std::vector<float> features(2 * input.size());
  std::iota(features.begin(), features.end(), 1.0f);
  auto const as_is = subject<plain>(features).predict(),
             turned = subject<plain>(shown(features, {.mirrored = 1})).predict(),
             moved = subject<plain>(
                         shown(features, {.down = -1, .right = 1, .at = edl::border::reflect, .mirrored = 1}))
                         .predict();
  subject<averaged> of_all(features);
  auto const mean = of_all.predict();
  REQUIRE(mean.size() == 6);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    CHECK(as_is[i] != turned[i]);
    CHECK(mean[i] == doctest::Approx((2 * as_is[i] + turned[i] + 0.5f * moved[i]) / 3.5f));
  }

  // Loss and metrics see the average.
  std::array<double, 2> sums{};
  REQUIRE(of_all.trainer->totals() == 2);
  of_all.trainer->evaluate(of_all.batch, sums);
  std::vector<std::int32_t> const labels{0, 2};
  double const loss = averaged::loss(edl::shape{1, 1, 3}, 2, edl::view<float>(mean),
                                     edl::view<std::int32_t>(labels), std::span<float>{});
  CHECK(sums[0] / sums[1] == doctest::Approx(loss));
  CHECK(subject<mirrored>(features).predict() == turned);
}

TEST_CASE("an evaluation averages views of the least confident half, where that is all that is wanted") {
  auto const features = numbers<float>(2 * input.size(), 1);
  subject<averaged> all(features);
  subject<doubtful> half(features);
  CHECK(half.predict() == all.predict());
  auto const outputs = [](auto& of) {
    std::vector<float> seen;
    of.trainer->inspect(of.batch, [&](int, double, edl::view<float> own) {
      seen.insert(seen.end(), own.begin(), own.end());
    });
    return seen;
  };
  subject<plain> one(features);
  auto const as_is = outputs(one), mean = outputs(all), some = outputs(half);
  auto const row = edl::least_confident(as_is, 3, 1).at(0);
  for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i] == (i / 3 == row ? mean : as_is)[i]);
  CHECK(mean[0] != as_is[0]);
}

TEST_CASE("in a lower precision an evaluation measures float32 besides, where it is asked to") {
  std::vector<float> features(2 * input.size());
  std::iota(features.begin(), features.end(), 1.0f);
  subject<plain> whole(features);
  std::array<double, 2> expected{};
  whole.trainer->evaluate(whole.batch, expected);
  for (auto const p : {edl::precision::bfloat16, edl::precision::int8}) {
    edl::cpu_options const device{.kernels = edl::kernels::own, .precision = p};
    subject<plain> narrow(features, {.max_batch = 2, .device = device, .compares = true});
    REQUIRE(narrow.trainer->totals() == 4);
    std::array<double, 4> sums{};
    narrow.trainer->evaluate(narrow.batch, sums);
    CHECK(sums[0] != expected[0]);
    CHECK(sums[0] == doctest::Approx(expected[0]).epsilon(0.05));
    CHECK(sums[2] == doctest::Approx(expected[0]).epsilon(1e-6));  // by another kernel
    CHECK(sums[3] == expected[1]);
    auto const told = edl::author::make_program<plain>({}).metrics(sums);
    REQUIRE(told.size() == 2);
    CHECK(told[0].first == "loss");
    CHECK(told[1].first == "float32_loss");
    CHECK(subject<plain>(features, {.max_batch = 2, .device = device}).trainer->totals() == 2);
  }
}

TEST_CASE("a look at an evaluation gives each record its own loss and outputs") {
  std::vector<float> features(2 * input.size());
  std::iota(features.begin(), features.end(), 1.0f);
  subject<averaged> of(features);
  auto const outputs = of.predict();
  std::array<double, 2> totals{};
  of.trainer->evaluate(of.batch, totals);
  std::vector<float> seen;
  double sum = 0;
  of.trainer->inspect(of.batch, [&](int row, double loss, edl::view<float> said) {
    CHECK(row == int(seen.size() / said.size()));
    seen.insert(seen.end(), said.begin(), said.end());
    sum += loss;
  });
  CHECK(seen == outputs);
  CHECK(sum == doctest::Approx(totals[0]));
  of.batch.rows = 0;
  of.trainer->inspect(of.batch, [](int, double, edl::view<float>) { FAIL("there is no record"); });
}

TEST_CASE("kernels are quantised again when variables have been written, and not before") {
  edl::worker::trainer_options const o{
      .max_batch = 2, .device = {.kernels = edl::kernels::own, .precision = edl::precision::int8}};
  auto const features = numbers<float>(2 * input.size(), 1);
  subject<plain> kept(features, o), fresh(features, o);
  kept.trainer->variables_written();
  auto const before = kept.predict();
  CHECK(before == fresh.predict());
  for (auto* s : {&kept, &fresh})
    for (float& v : s->trainer->variables()) v = -v * v;
  auto const after = fresh.predict();  // nothing is kept where nobody tells
  CHECK(after != before);
  CHECK(kept.predict() != after);
  kept.trainer->variables_written();
  CHECK(kept.predict() == after);
  CHECK(kept.predict() == after);
}

TEST_CASE("training sees the sample itself, however it is evaluated") {
  std::vector<float> features(2 * input.size());
  std::iota(features.begin(), features.end(), 1.0f);
  subject<plain> a(features);
  subject<averaged> b(features);
  CHECK(a.trainer->train(a.batch, 1, {}) == b.trainer->train(b.batch, 1, {}));
}

TEST_CASE("a bound of memory is kept to and told, and changes no bit") {
  std::size_t const whole = edl::model<deep::network, edl::cpu>::memory(64).total();
  auto const features = numbers<float>(2 * input.size(), 1);
  subject<deep> free(features, {.max_batch = 64}),
      bounded(features, {.max_batch = 64, .memory_budget = whole * 8 / 10});
  CHECK(free.trainer->expect(0, 0).empty());
  CHECK(bounded.trainer->expect(0, 0).find("are computed again in the backward pass") != std::string::npos);
  CHECK(free.trainer->train(free.batch, 1, {}) == bounded.trainer->train(bounded.batch, 1, {}));
  CHECK(std::ranges::equal(free.trainer->gradients(), bounded.trainer->gradients()));
  CHECK_THROWS_AS(edl::author::make_trainer<deep>({.max_batch = 64, .memory_budget = 1}), edl::usage_error);
}

TEST_CASE("an embedding learns what a line of the same numbers cannot") {
  auto const of_ids = edl::author::make_trainer<words>({.max_batch = 16});
  auto const of_numbers = edl::author::make_trainer<no_words>({.max_batch = 16});
  CHECK(learn_words(*of_ids, 100) == 1);
  CHECK(learn_words(*of_numbers, 100) < 0.8);
  auto const bfloat16 = edl::author::make_trainer<words>({.max_batch = 16, .keep = nn::storage::bfloat16});
  CHECK(learn_words(*bfloat16, 100) == 1);
}

TEST_CASE("what is no id is refused when it is fed, by the number of the record and what is wrong with it") {
  auto const t = edl::author::make_trainer<words>({.max_batch = 2});
  auto b = t->make_batch();
  struct wrong : words {
    static void feed(edl::example const& record, edl::sample<wrong>& into, edl::mode) {
      into.features = xt::cast<float>(record.floats("ids"));
      into.label = 0;
    }
  };
  auto const of_wrong = edl::author::make_trainer<wrong>({.max_batch = 2});
  edl::example e;
  for (float const bad : {536.0f, -1.0f, 0.5f}) {
    CAPTURE(bad);
    edl::example_builder(e).floats("ids", std::vector<float>{535, 0, bad});
    CHECK_THROWS_WITH_AS(
        of_wrong->feed(e, b, 0, edl::mode::training),
        doctest::Contains("is no id: the network's embedding takes whole numbers from 0 to 535"),
        edl::data_error);
  }
  edl::example_builder(e).floats("ids", std::vector<float>{535, 0, 5});
  of_wrong->feed(e, b, 0, edl::mode::training);
  // Who passes the feed by meets the operation.
  b.rows = 1;
  b.features[1] = 536;
  CHECK_THROWS_WITH_AS(t->train(b, 1, {}), doctest::Contains("536 (number 1 of sample 0)"), edl::error);
}

TEST_CASE("minibatches of planned lengths give what those of the longest give") {
  for (int const longer : {3, 4, 7, 11, 16}) {
    CAPTURE(longer);
    CHECK(greatest_difference(all_of<of_planned_ids>(longer), all_of<of_16_ids>(longer)) < 1e-5);
    CHECK(greatest_difference(all_of<of_planned_tags>(longer), all_of<of_16_tags>(longer)) < 1e-5);
  }
}

TEST_CASE("a label of a place that is padding is refused where lengths are planned") {
  auto const t = edl::author::make_trainer<of_planned_tags>({.max_batch = 1});
  auto b = t->make_batch();
  CHECK_THROWS_WITH_AS(
      t->feed(sentence(3, 4), b, 0, edl::mode::training),
      "label 0 of place 3, which is padding: a place behind a sample's last id is labelled -1",
      edl::data_error);
}

}  // namespace cpu_trainer_test
