// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "edl/author/sample.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/job/worker/trainer.hpp"

/// Three ids a record, which bfloat16 would round; whether the first is odd is what is to be learned.
template <class Model>
struct of_words {
  static constexpr edl::nn::softmax_cross_entropy loss{};
  static constexpr std::int64_t count = 24;

  static void feed(edl::example const& record, edl::sample<Model>& into, edl::mode) {
    auto const number = record.integer("number");
    for (std::int64_t i = 0; i < 3; ++i)
      into.features(std::size_t(i)) = float(512 + number * (2 * i + 1) % count) / Model::unit;
    into.label = number % 2;
  }
};

struct words : of_words<words> {
  static constexpr float unit = 1;
  static constexpr auto network =
      edl::nn::sequential(edl::nn::ids{.count = 3}, edl::nn::embedding{.vocabulary = 512 + 24, .width = 8},
                          edl::nn::dense{.units = 2});
};

/// The same without an embedding: a line does not tell odd numbers from even ones.
struct no_words : of_words<no_words> {
  static constexpr float unit = 536;
  static constexpr auto network =
      edl::nn::sequential(edl::nn::features{.count = 3}, edl::nn::dense{.units = 2});
};

/// Fills a batch as a loader does.
inline void fill_words(edl::worker::trainer const& t, edl::data::batch& b,
                       std::vector<std::uint64_t> const& numbers, edl::mode m) {
  b.records = numbers;
  b.rows = int(numbers.size());
  b.identity.m = m;
  edl::example e;
  for (int row = 0; row < b.rows; ++row) {
    edl::example_builder(e).integer("number", std::int64_t(numbers[std::size_t(row)]));
    t.feed(e, b, row, m);
  }
}

/// Trains by plain gradient descent, in minibatches of 16 and 8, for so many epochs; which share is right
/// then.
inline double learn_words(edl::worker::trainer& t, int epochs) {
  auto b = t.make_batch();
  std::vector<std::uint64_t> minibatches[2];
  for (std::uint64_t i = 0; i < 24; ++i) minibatches[i < 16 ? 0 : 1].push_back(i);
  std::uint64_t step = 0;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (auto const& numbers : minibatches) {
      fill_words(t, b, numbers, edl::mode::training);
      t.train(b, ++step, {});
      auto const g = t.gradients();
      for (std::size_t i = 0; i < g.size(); ++i) t.variables()[i] -= 2 * g[i];
      t.variables_written();
    }
  int right = 0;
  for (auto const& numbers : minibatches) {
    fill_words(t, b, numbers, edl::mode::prediction);
    auto const y = t.predict(b);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      right += (y[2 * i + 1] > y[2 * i]) == (numbers[i] % 2 == 1);
  }
  return right / 24.0;
}
