// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>

#include "app/words.hpp"
#include "cuda/expressions.hpp"
#include "cuda/gpu.hpp"
#include "edl/author/model_learner.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/edl.hpp"

namespace trainer_test {

namespace nn = edl::nn;

namespace {

struct normalised {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 2}, nn::batch_norm{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.1f, .momentum = 0.9f};
  static void feed(edl::example const&, edl::sample<normalised>&, edl::mode) {}
};

/// The same, and its kernel decays, but what else is trained does so only for Biases = true.
template <bool Biases>
struct decaying {
  static constexpr auto network = normalised::network;
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.weight_decay = 0.5f, .decay_biases = Biases};
  static void feed(edl::example const&, edl::sample<decaying>&, edl::mode) {}
};

struct orthogonal {
  static constexpr auto network = normalised::network;
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::muon optimizer{.weight_decay = 0.5f, .decay_biases = false};
  static void feed(edl::example const&, edl::sample<orthogonal>&, edl::mode) {}
};

/// Small pictures, augmented; the seed of what a record shows is its number.
template <class Model>
struct pictures {
  static constexpr edl::shape picture{6, 5, 3};
  static constexpr auto network =
      nn::sequential(nn::image{.height = 6, .width = 5, .channels = 3}, nn::conv2d{.filters = 4, .kernel = 3},
                     nn::relu{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.1f, .momentum = 0.9f};
  using metrics = edl::metrics<edl::mean_loss>;
  static void feed(edl::example const& record, edl::sample<Model>& into, edl::mode) {
    auto const number = record.integer("number");
    edl::random_stream const random{9, std::uint64_t(number)};
    for (std::size_t i = 0; i < into.features.size(); ++i) into.features.flat(i) = random.uniform(i) - 0.5f;
    into.label = number % 3;
  }
};

struct placed : pictures<placed> {
  static constexpr auto augmentation =
      edl::augment(edl::random_crop{.padding = 2, .border = edl::border::reflect},
                   edl::random_flip{.alternating = true}, edl::random_jitter{}, edl::cutout{.size = 2});
  static constexpr auto evaluation =
      edl::test_time_augmentation(edl::test_time_view{.weight = 2}, edl::test_time_view{.mirrored = true},
                                  edl::test_time_view{.down = -1, .right = 1});
};

struct doubtful : pictures<doubtful> {
  static constexpr auto evaluation = placed::evaluation.of_least_confident(0.75f);
};

struct unplaced : pictures<unplaced> {  // only the processor can do it
  static constexpr auto augmentation = edl::augment(edl::random_flip{}, edl::random_crop{.padding = 1});
};

struct plain : pictures<plain> {};

/// Layers and a loss whose kernels are compiled when they are met.
struct expressed : pictures<expressed> {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 6, .width = 5, .channels = 3}, nn::conv2d{.filters = 4, .kernel = 3},
                     expressions_test::trained_swish{}, nn::layer_norm{}, expressions_test::own_dropout{},
                     nn::dense{.units = 3});
  static constexpr expressions_test::focal loss{};
};

/// Minibatches of given records, as a loader makes them.
struct minibatches {
  edl::worker::trainer const& of;
  edl::data::batch b = of.make_batch();
  int fed = 0;

  edl::data::batch const& operator()(std::vector<std::uint64_t> const& records, std::uint32_t epoch,
                                     edl::mode m = edl::mode::training) {
    b.records = records;
    b.rows = int(records.size());
    b.identity = {{{epoch, 0}, 0, 1}, m, 0};
    std::ranges::fill(b.classes, -1);
    std::ranges::fill(b.features, std::numeric_limits<float>::quiet_NaN());
    b.kept = of.has(b);
    edl::example e;
    for (int row = 0; row < b.rows && !b.kept; ++row, ++fed) {
      edl::example_builder(e).integer("number", std::int64_t(records[std::size_t(row)]));
      of.feed(e, b, row, m);
    }
    return b;
  }
};

/// What a few epochs of training and evaluation come to.
struct course {
  std::vector<double> losses;
  std::vector<float> variables, predictions;
  int fed = 0;
  std::string said;

  course(edl::worker::trainer& t, std::uint64_t training, std::uint64_t evaluation)
      : said(t.expect(training, evaluation)) {
    minibatches make{t};
    edl::arena* const there = t.arena();
    variables.assign(t.variables().begin(), t.variables().end());
    std::vector<float> slots(t.gradients().size());
    if (there) there->place(variables, slots, slots.size());
    edl::rule<edl::sgd> const rule{{.learning_rate = 0.1f, .momentum = 0.9f}};
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
      // Others in a minibatch in each epoch: the second is known in part.
      for (std::vector<std::uint64_t> const& records :
           {epoch == 0 ? std::vector<std::uint64_t>{1, 3, 4} : std::vector<std::uint64_t>{0, 2, 3},
            epoch == 0 ? std::vector<std::uint64_t>{0, 5} : std::vector<std::uint64_t>{1, 4, 5}}) {
        losses.push_back(t.train(make(records, epoch), epoch, {}));
        if (there)
          there->step(0.1f, epoch);
        else
          rule.apply(t.variables().first(slots.size()), t.gradients(), std::vector<std::span<float>>{slots},
                     0.1f, epoch);
        if (!there) t.variables_written();
      }
      std::vector<double> totals(t.totals());
      t.evaluate(make({0, 1, 2}, 0, edl::mode::evaluation), totals);
      losses.insert(losses.end(), totals.begin(), totals.end());
    }
    auto const y = t.predict(make({7, 8}, 0, edl::mode::prediction));
    predictions.assign(y.begin(), y.end());
    fed = make.fed;
    if (there)
      there->fetch(variables, slots);
    else
      variables.assign(t.variables().begin(), t.variables().end());
  }
};

template <class Model>
std::unique_ptr<edl::worker::trainer> trainer_on_gpu(edl::worker::trainer_options o = {}) {
  o.max_batch = std::max(o.max_batch, 4);
  o.on = edl::worker::device_kind::cuda;
  return edl::author::make_trainer<Model>(o);
}

template <class Model>
course on_gpu(edl::worker::keep_samples how, edl::precision p = edl::precision::float32) {
  auto const t = trainer_on_gpu<Model>({.cuda = {.precision = p, .measured = false}, .samples = how});
  return course(*t, 6, 3);
}

edl::data::batch batch_of(edl::worker::trainer const& t, std::vector<float> const& features) {
  auto b = t.make_batch();
  std::ranges::copy(features, b.features.begin());
  b.rows = int(features.size() / 2);
  return b;
}

}  // namespace

TEST_CASE("a pass without a loss leaves what is kept on the GPU as it was") {
  if (!gpu_or_skip()) return;
  auto const trainer = trainer_on_gpu<normalised>();
  auto& t = *trainer;
  edl::arena* const there = t.arena();
  REQUIRE(there);
  std::vector<float> variables(t.variables().begin(), t.variables().end());
  std::size_t const parameters = t.gradients().size();
  std::vector<float> slots(parameters), after(variables.size()), after_slots(parameters);
  there->place(variables, slots, parameters);
  float const none = std::numeric_limits<float>::quiet_NaN();
  auto const good = batch_of(t, {1, 2, 3, 5}), bad = batch_of(t, {1, none, 3, 5});
  for (int times : {1, 2, 3}) {  // as they come, recorded, replayed
    CAPTURE(times);
    CHECK(std::isfinite(t.train(good, 1, {})));
    there->fetch(variables, slots);
    CHECK_FALSE(std::isfinite(t.train(bad, 1, {})));
    there->fetch(after, after_slots);
    CHECK(after == variables);
    CHECK(after_slots == slots);
  }
  CHECK(variables[parameters] > 0);  // the good ones have moved a mean
}

TEST_CASE("a GPU spares biases weight decay, and nothing else") {
  if (!gpu_or_skip()) return;
  auto const stepped = [](edl::worker::trainer& t) {
    edl::arena* const there = t.arena();
    REQUIRE(there);
    std::vector<float> variables(t.variables().size(), 2.0f), none;
    there->place(variables, none, 1);
    CHECK(std::isfinite(t.train(batch_of(t, {1, 2, 3, 5}), 1, {})));
    there->step(0.5f, 0);
    there->fetch(variables, none);
    return variables;
  };
  auto const all = stepped(*trainer_on_gpu<decaying<true>>()),
             some = stepped(*trainer_on_gpu<decaying<false>>());
  // gamma (2), beta (2), kernel (2, 3), bias (3)
  for (std::size_t i = 0; i < 13; ++i) {
    CAPTURE(i);
    CHECK(some[i] == doctest::Approx(all[i] + (i < 4 || i >= 10 ? 0.5f : 0.0f)));
  }
}

TEST_CASE("a GPU makes steps of Muon on matrices, and AdamW's on the rest") {
  if (!gpu_or_skip()) return;
  auto const t = trainer_on_gpu<orthogonal>();
  edl::arena* const there = t->arena();
  REQUIRE(there);
  std::vector<float> variables(t->variables().size(), 2.0f), slots(26);
  there->place(variables, slots, 13);
  CHECK(std::isfinite(t->train(batch_of(*t, {1, 2, 3, 5}), 1, {})));
  there->step(0.1f, 0);
  there->fetch(variables, slots);
  double moved = 0;
  for (std::size_t i = 0; i < 13; ++i) {
    CAPTURE(i);
    bool const matrix = i >= 4 && i < 10;
    if (matrix) moved += std::pow(double(variables[i]) - 1.9, 2);  // what decay leaves
    if (!matrix) CHECK(std::abs(variables[i] - 2) < 0.1001f);
    if (matrix) CHECK(slots[13 + i] == 0);
    if (i >= 10) CHECK(slots[13 + i] != 0);
  }
  // Two rows of length about 1, times 0.2 · √3 · 0.1.
  CHECK(std::sqrt(moved) > 0.02);
  CHECK(std::sqrt(moved) < 0.06);
}

TEST_CASE("a GPU makes steps of parts at their own rates") {
  if (!gpu_or_skip()) return;
  auto const stepped = [](std::vector<edl::rated_range> const& rated) {
    auto const t = trainer_on_gpu<decaying<false>>({.rated = rated});
    edl::arena* const there = t->arena();
    REQUIRE(there);
    std::vector<float> variables(t->variables().size(), 2.0f), none;
    there->place(variables, none, 1);
    CHECK(std::isfinite(t->train(batch_of(*t, {1, 2, 3, 5}), 1, {})));
    there->step(0.5f, 0);
    there->fetch(variables, none);
    return variables;
  };
  auto const all = stepped({}), some = stepped({{{2, 4}, 0.5f}, {{4, 10}, 2}});
  // gamma (2), beta (2), kernel (2, 3), bias (3)
  for (std::size_t i = 0; i < 13; ++i) {
    CAPTURE(i);
    float const factor = i >= 2 && i < 4 ? 0.5f : i >= 4 && i < 10 ? 2.0f : 1.0f;
    CHECK(some[i] - 2 == doctest::Approx(factor * (all[i] - 2)));
  }
  CHECK(all[7] != 2);
}

TEST_CASE("layers and a loss that are expressions train on a GPU as on the processor") {
  if (!gpu_or_skip()) return;
  auto const processor =
      edl::author::make_trainer<expressed>({.max_batch = 4, .on = edl::worker::device_kind::cpu});
  course const want(*processor, 6, 3), got = on_gpu<expressed>(edl::worker::keep_samples::automatic);
  CHECK(distance(got.variables, want.variables) < 1e-4);
  CHECK(distance(got.predictions, want.predictions) < 1e-4);
  REQUIRE(got.losses.size() == want.losses.size());
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    CHECK(got.losses[i] == doctest::Approx(want.losses[i]).epsilon(1e-4));
}

TEST_CASE("samples that are kept on the GPU train to the same bits as those that are fed each time") {
  if (!gpu_or_skip()) return;
  using enum edl::worker::keep_samples;
  constexpr int all = 4 * (3 + 2) + 3 + 4 * 3 + 2;
  for (edl::precision const p : {edl::precision::float32, edl::precision::bfloat16}) {
    course const fed = on_gpu<placed>(off, p), kept = on_gpu<placed>(on, p),
                 some = on_gpu<placed>(automatic, p);
    CHECK(fed.said == "");
    CHECK(kept.said ==
          "keeps the 9 samples of training and evaluation in the GPU's memory once they were fed: 0.0 MiB");
    CHECK(fed.fed == all);
    // All of the first epoch; in the second, a minibatch with one record that is new; evaluation once.
    CHECK(kept.fed == 5 + 3 + 3 + 2);
    for (course const* other : {&kept, &some}) {
      CHECK(other->losses == fed.losses);
      CHECK(other->variables == fed.variables);
      CHECK(other->predictions == fed.predictions);
    }
  }
}

TEST_CASE("a GPU augments, and averages views, as the processor does") {
  if (!gpu_or_skip()) return;
  auto const one = edl::author::make_trainer<placed>({.max_batch = 4});
  auto const other = trainer_on_gpu<placed>({.samples = edl::worker::keep_samples::on});
  auto &processor = *one, &gpu = *other;
  edl::random_stream const random{3, 0};
  std::uint64_t i = 0;
  for (float& v : processor.variables()) v = random.uniform(i++) - 0.5f;
  std::ranges::copy(processor.variables(), gpu.variables().begin());
  gpu.variables_written();
  CHECK_FALSE(gpu.expect(6, 6).empty());
  minibatches on_processor{processor}, on_gpu{gpu};
  std::vector<std::uint64_t> const records{0, 3, 4, 5};
  std::vector<double> losses;
  for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
    double const wanted = processor.train(on_processor(records, epoch), 1, {});
    CHECK(gpu.train(on_gpu(records, epoch), 1, {}) == doctest::Approx(wanted).epsilon(1e-5));
    CHECK(distance(gpu.gradients(), processor.gradients()) < 1e-5);
    losses.push_back(wanted);
  }
  std::ranges::sort(losses);
  CHECK(std::ranges::adjacent_find(losses) == losses.end());  // every epoch looks different
  for (int times : {1, 2, 3}) {
    CAPTURE(times);
    auto const wanted = processor.predict(on_processor(records, 0, edl::mode::prediction));
    CHECK(distance(gpu.predict(on_gpu(records, 0, edl::mode::prediction)), wanted) < 1e-5);
    std::vector<double> a(2), b(2);
    processor.evaluate(on_processor(records, 0, edl::mode::evaluation), a);
    gpu.evaluate(on_gpu(records, 0, edl::mode::evaluation), b);
    CHECK(b[0] == doctest::Approx(a[0]).epsilon(1e-5));
  }
}

TEST_CASE(
    "a GPU evaluates views of the least confident as the processor does, kept or fed, in several passes") {
  if (!gpu_or_skip()) return;
  using enum edl::worker::keep_samples;
  auto const one = edl::author::make_trainer<doubtful>({.max_batch = 4});
  edl::random_stream const random{3, 0};
  std::uint64_t i = 0;
  for (float& v : one->variables()) v = random.uniform(i++) - 0.5f;
  minibatches on_processor{*one};
  for (auto const keep : {on, off}) {
    auto const other = trainer_on_gpu<doubtful>({.samples = keep});
    std::ranges::copy(one->variables(), other->variables().begin());
    other->variables_written();
    other->expect(0, 9);
    minibatches on_gpu{*other};
    for (std::vector<std::uint64_t> const& records :
         {std::vector<std::uint64_t>{5, 0, 3, 8}, {1, 2, 4, 7}, {5, 0, 3, 8}, {6}, {6}}) {
      std::vector<double> a(2), b(2);
      one->evaluate(on_processor(records, 0, edl::mode::evaluation), a);
      other->evaluate(on_gpu(records, 0, edl::mode::evaluation), b);
      CHECK(b[0] == doctest::Approx(a[0]).epsilon(1e-5));
    }
  }
}

TEST_CASE("what only the processor can do to pictures is done while they are fed, each time") {
  if (!gpu_or_skip()) return;
  using enum edl::worker::keep_samples;
  course const some = on_gpu<unplaced>(automatic), none = on_gpu<unplaced>(off);
  CHECK(some.said == "keeps the 3 samples of evaluation in the GPU's memory once they were fed: 0.0 MiB");
  CHECK(some.losses == none.losses);
  CHECK(some.fed == none.fed - 3 * 3);
  CHECK_THROWS_WITH_AS(on_gpu<unplaced>(on), doctest::Contains("augmentation"), edl::usage_error);
  CHECK(on_gpu<plain>(on).losses == on_gpu<plain>(off).losses);
}

TEST_CASE("samples that do not fit are fed each time, or refused where they are to be kept") {
  if (!gpu_or_skip()) return;
  auto const some = trainer_on_gpu<plain>(),
             all = trainer_on_gpu<plain>({.samples = edl::worker::keep_samples::on});
  CHECK(some->expect(1'000'000'000'000, 0) == "");
  CHECK_THROWS_WITH_AS(all->expect(1'000'000'000'000, 0), doctest::Contains("--keep_samples=auto"),
                       edl::usage_error);
}

TEST_CASE("ids arrive as they are in any precision: an embedding learns what it could not of rounded ones") {
  if (!gpu_or_skip()) return;
  for (edl::precision const p : {edl::precision::float32, edl::precision::bfloat16}) {
    CAPTURE(int(p));
    auto const t = trainer_on_gpu<words>({.max_batch = 16, .cuda = {.precision = p, .measured = false}});
    CHECK(learn_words(*t, 100) == 1);
    using enum edl::worker::keep_samples;
    course const fed = on_gpu<words>(off, p), kept = on_gpu<words>(on, p);
    CHECK(kept.fed < fed.fed);
    CHECK(kept.losses == fed.losses);
    CHECK(kept.variables == fed.variables);
    CHECK(kept.predictions == fed.predictions);
  }
}

TEST_CASE("what is no id makes a loss that is not finite, and nothing is read beyond the table") {
  if (!gpu_or_skip()) return;
  auto const trainer = trainer_on_gpu<words>();
  auto& t = *trainer;
  auto b = t.make_batch();
  fill_words(t, b, {3, 4}, edl::mode::training);
  for (int times : {1, 2, 3}) {  // as they come, recorded, replayed
    CAPTURE(times);
    for (float const bad : {536.0f, -1.0f, 512.5f, 1e30f}) {
      b.features[4] = bad;
      CHECK_FALSE(std::isfinite(t.train(b, 1, {})));
    }
    b.features[4] = 535;
    CHECK(std::isfinite(t.train(b, 1, {})));
  }
}

}  // namespace trainer_test
