// SPDX-License-Identifier: Apache-2.0
// Rows of tables on a GPU: what is looked up, and what gradients they get.
#include <algorithm>
#include <cmath>
#include <memory>

#include "compute/device/draw.hpp"
#include "cuda/gpu.hpp"
#include "edl/author/model_learner.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "edl/edl.hpp"
#include "edl/job/train/trainers/gpu_rows.hpp"

namespace cuda_tables_test {

namespace nn = edl::nn;
using edl::sparse::minibatch_rows;

namespace {

/// Tables and inputs of any shape: numbers before, between and behind them.
struct shape_of_rows {
  edl::sparse::embedding_layout layout;
  std::size_t features = 0;

  explicit shape_of_rows(edl::random_stream const& random) {
    std::uint64_t i = 0;
    auto const draw = [&](std::size_t n) { return std::size_t(random.uniform(i++) * double(n)); };
    constexpr int widths[] = {1, 2, 3, 8, 31, 64, 130};
    for (std::size_t t = 0, all = 1 + draw(2); t < all; ++t)
      layout.tables.push_back({std::to_string(t), widths[draw(7)]});
    for (std::size_t n = 0, all = layout.tables.size() + draw(3); n < all; ++n) {
      features += draw(3);
      std::size_t const t = n % layout.tables.size(), ids = 1 + draw(6), how = draw(4);
      layout.inputs.push_back({.table = t, .first_id = layout.ids, .ids = ids, .first_feature = features});
      if (how > 0) layout.inputs.back().combiner = nn::combiner(how - 1);
      layout.ids += ids;
      features += std::size_t(layout.tables[t].width) * (how > 0 ? 1 : ids);
    }
    features += draw(2);
  }
};

edl::data::batch batch_of(shape_of_rows const& s, int samples, edl::random_stream const& random) {
  auto b = edl::data::make_batch(samples + 1, s.features, 1, 0, s.layout.ids);
  b.rows = samples;
  std::uint64_t i = 0;
  for (float& v : b.features) v = random.uniform(i++) - 0.5f;
  for (std::uint64_t& id : b.ids) {  // some of them very often
    float const u = random.uniform(i++);
    id = u < 0.4f ? ~0ull : std::uint64_t(u * 90);
  }
  for (float& w : b.weights) {
    float const u = random.uniform(i++);
    w = u < 0.4f ? 0 : u < 0.7f ? 1 : u;
  }
  if (samples > 1) std::fill_n(b.weights.begin() + std::ptrdiff_t(s.layout.ids), s.layout.ids, 0.0f);
  return b;
}

void draw_rows(minibatch_rows& rows, edl::random_stream const& random) {
  std::uint64_t i = 0;
  for (std::size_t t = 0; t < rows.tables(); ++t)
    for (float& v : rows.rows(t)) v = random.uniform(i++) - 0.5f;
}

}  // namespace

TEST_CASE("rows are looked up and gradients added up as on the processor, whatever their shapes") {
  std::size_t hot = 0;
  for (edl::precision const p : {edl::precision::float32, edl::precision::bfloat16}) {
    auto const gpu = gpu_or_skip({.precision = p});
    if (!gpu) return;
    bool const half = p == edl::precision::bfloat16;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      CAPTURE(seed);
      CAPTURE(half);
      shape_of_rows const s({seed, 1});
      edl::train::gpu_rows there(gpu, s.layout, s.features, 65);
      edl::device_buffer<float> features(gpu, 65 * s.features), slope(gpu, 65 * s.features);
      for (int const samples : {seed % 2 ? 64 : 5, 1, 65, 0}) {
        CAPTURE(samples);
        auto b = batch_of(s, samples, {seed, 2});
        std::size_t const n = std::size_t(samples) * s.features;
        minibatch_rows rows(s.layout), own(s.layout);
        for (auto* each : {&rows, &own}) each->begin(b), draw_rows(*each, {seed, 3});
        there.give(b, rows, features.span().first(n));
        own.fill(b);
        std::vector<float> got(n);
        gpu->read(features.span().first(n), got);
        CHECK(distance(got, edl::view<float>(b.features).first(n)) < 1e-6);
        // Gradients are rounded where activations are.
        auto dy = numbers<float>(n, seed);
        gpu->write(dy, features.span().first(n));
        gpu->store(features.span().first(n), slope.span().first(n));
        gpu->load(slope.span().first(n), features.span().first(n));
        gpu->read(features.span().first(n), dy);
        auto const found = there.sum(slope.span().first(n), rows);
        auto const wanted = own.sum(b, dy);
        REQUIRE(found.size() == wanted.size());
        for (std::size_t t = 0; t < wanted.size(); ++t) {
          CHECK(std::ranges::equal(found[t].ids, wanted[t].ids));
          REQUIRE(found[t].gradients.size() == wanted[t].gradients.size());
          CHECK(distance(found[t].gradients, wanted[t].gradients) < 2e-6);
          std::vector<float> const before(found[t].gradients.begin(), found[t].gradients.end());
          there.sum(slope.span().first(n), rows);
          CHECK(std::ranges::equal(rows.gradients(t), before));  // the same bits
        }
        hot += samples > 1 && std::ranges::count(b.ids, ~0ull) > 130;
      }
    }
  }
  CHECK(hot > 20);  // more terms of a row than are added up at a time
}

namespace {

/// DeepFM with lists, of which some are empty, and numbers between the rows.
struct clicks {
  static constexpr auto in = nn::inputs(
      nn::input<"before">(nn::features{.count = 2}),
      nn::input<"vectors">(nn::served_embedding{.count = 3, .width = 7}),
      nn::input<"between">(nn::features{.count = 1}),
      nn::input<"list", "vectors">(
          nn::served_embedding_bag{.most = 4, .width = 7, .combiner = nn::combiner::mean}),
      nn::input<"weights">(nn::served_embedding_bag{.most = 3, .width = 1, .combiner = nn::combiner::sqrtn}));
  static constexpr auto network = nn::sequential(
      in, nn::sum(nn::sequential(nn::concat(in.from<"before">(), in.from<"between">(), in.from<"list">()),
                                 nn::dense{.units = 1}),
                  in.from<"weights">(nn::identity{}),
                  in.from<"vectors">(nn::sum(nn::factorization_machine{},
                                             nn::sequential(nn::flatten{}, nn::dense{.units = 8}, nn::relu{},
                                                            nn::dense{.units = 1})))));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{};
  using metrics = edl::metrics<edl::mean_loss>;
  static void feed(edl::example const&, edl::sample<clicks>& into, edl::mode) {
    (void)into.input<"list">();
    (void)into.input<"weights">();
  }
};

}  // namespace

TEST_CASE("a network with tables has the processor's gradients, of variables and of rows") {
  static_assert(edl::author::is_portable<clicks>);
  constexpr int most = 33;
  auto const processor = edl::author::make_trainer<clicks>({.max_batch = most});
  shape_of_rows s({0, 1});
  s.layout = processor->embeddings();
  s.features = std::size_t(clicks::in.input().size());
  for (edl::precision const p : {edl::precision::float32, edl::precision::bfloat16}) {
    if (!gpu_or_skip()) return;
    bool const half = p == edl::precision::bfloat16;
    CAPTURE(half);
    auto const gpu = edl::author::make_trainer<clicks>({.max_batch = most,
                                                        .on = edl::worker::device_kind::cuda,
                                                        .cuda = {.precision = p, .measured = false}});
    CHECK(gpu->arena() == nullptr);  // steps of rows are made where they are
    CHECK(gpu->expect(100, 100) == "");
    edl::random_stream const random{3, 0};
    std::uint64_t i = 0;
    for (float& v : processor->variables()) v = random.uniform(i++) - 0.5f;
    std::ranges::copy(processor->variables(), gpu->variables().begin());
    gpu->variables_written();
    double const error = half ? 0.1 : 1e-5;  // a relu may turn where activations are rounded
    std::uint64_t seed = 0;
    for (int const samples : {32, 32, 32, 32, 1, 1, 33, 7}) {  // as they come, recorded, replayed
      CAPTURE(samples);
      auto b = batch_of(s, samples, {++seed, 2});
      for (float& v : b.targets) v = float(seed++ % 2);
      minibatch_rows rows(s.layout), own(s.layout);
      for (auto* each : {&rows, &own}) each->begin(b), draw_rows(*each, {seed, 3});
      auto there = b;
      gpu->give_rows(there, rows);
      processor->give_rows(b, own);
      double const wanted = processor->train(b, seed, {});
      CHECK(gpu->train(there, seed, {}) == doctest::Approx(wanted).epsilon(error));
      CHECK(distance(gpu->gradients(), processor->gradients()) < error);
      auto const of_rows = processor->row_gradients(b, own), found = gpu->row_gradients(there, rows);
      for (std::size_t t = 0; t < of_rows.size(); ++t)
        CHECK(distance(found[t].gradients, of_rows[t].gradients) < error);
      gpu->give_rows(there, rows);
      std::vector<double> a(2), c(2);
      processor->evaluate(b, a);
      gpu->evaluate(there, c);
      CHECK(c[0] == doctest::Approx(a[0]).epsilon(error));
      CHECK(distance(gpu->predict(there), processor->predict(b)) < error);
    }
  }
}

TEST_CASE("samples with rows are not kept on a GPU, whose rows change") {
  if (!gpu_or_skip()) return;
  auto const t = edl::author::make_trainer<clicks>(
      {.max_batch = 2, .on = edl::worker::device_kind::cuda, .samples = edl::worker::keep_samples::on});
  CHECK_THROWS_WITH_AS(t->expect(100, 100), doctest::Contains("rows of tables"), edl::usage_error);
}

}  // namespace cuda_tables_test
