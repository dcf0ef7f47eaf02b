// SPDX-License-Identifier: Apache-2.0
// What the tests of optimisers of whole variables share.
#pragma once

#include <doctest/doctest.h>

#include <thread>

#include "compute/optim/check.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/core/error.hpp"

namespace whole {

/// A step on one variable of these dimensions, or on a vector.
template <class T, class Optimizer>
void step(check::memory<T, Optimizer>& m, std::vector<T> const& gradients, T rate, edl::extents dims = {}) {
  if (dims.rank == 0) dims = {int(m.weights.size())};
  std::vector<std::span<T>> const spans(m.slots.begin(), m.slots.end());
  m.optimizer.apply_whole(edl::variable{"dense/kernel", dims, 0}, std::span<T>(m.weights),
                          edl::view<T>(gradients), std::span<std::span<T> const>(spans), rate, m.step++);
}

// 2700 + 30 + 7 + 126 + 6 = 2869 trained, and 7 carried.
inline edl::parameter_layout layout() {
  return {.variables = {{"dense/kernel", {90, 30}, 0},
                        {"dense/bias", {30}, 2700},
                        {"layer_norm/gamma", {7}, 2730},
                        {"conv2d/kernel", {3, 3, 2, 7}, 2737},
                        {"gru/bias", {2, 3}, 2863},
                        {"batch_norm/moving_mean", {7}, 2869}},
          .parameters = 2869,
          .state = 7};
}

/// Weights after steps of a rule, each in ranges that end there; then slots.
inline std::vector<float> trained(edl::update_rule const& rule, std::vector<std::size_t> const& ends) {
  std::size_t const n = layout().parameters;
  auto weights = check::normal<float>(n, 1, 0);
  std::vector<std::vector<float>> slots;
  for (std::size_t s = 0; s < rule.slots().size(); ++s) slots.emplace_back(n, rule.initial(s));
  for (std::uint64_t step = 0; step < 7; ++step) {
    auto const g = check::normal<float>(n, 2, step);
    std::size_t first = 0;
    for (std::size_t const end : ends) {
      std::vector<std::span<float>> parts;
      for (auto& s : slots) parts.push_back(std::span(s).subspan(first, end - first));
      rule.apply_at(first, std::span(weights).subspan(first, end - first),
                    edl::view<float>(g).subspan(first, end - first), parts, 0.03f, step);
      first = end;
    }
  }
  for (auto const& s : slots) weights.insert(weights.end(), s.begin(), s.end());
  return weights;
}

/// Any ranges that cut no variable give the same bits, and so do threads; others are refused.
template <class Optimizer>
void same_however_cut(Optimizer const& o) {
  edl::rule const rule(o, edl::constant_rate{0.03f}, layout());
  std::vector<std::size_t> const borders(rule.borders().begin(), rule.borders().end());
  CHECK(borders == std::vector<std::size_t>{0, 2700, 2730, 2737, 2863, 2869, 2876});
  auto const all = trained(rule, {2869});
  CHECK(check::same_bits(trained(rule, {2700, 2700, 2730, 2737, 2863, 2869}), all));
  CHECK(check::same_bits(trained(rule, {2737, 2869}), all));
  CHECK_THROWS_WITH_AS(trained(rule, {2701, 2869}), doctest::Contains("[0, 2701) cut a variable"),
                       edl::error);
  CHECK_THROWS_AS(trained(rule, {2700, 2731, 2869}), edl::error);
  edl::rule shared = rule;
  int used = 0;
  shared.share([&](std::function<void(int)> const& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&work, i] { work(i); });
    for (std::thread& t : threads) t.join();
    ++used;
  });
  CHECK(check::same_bits(trained(shared, {2869}), all));
  CHECK(used == 7);
  edl::moving_average const averages(rule, 0.9);
  CHECK(averages.borders().size() == 7);
  auto averaged = trained(averages, {2737, 2869});
  averaged.resize(all.size());
  CHECK(check::same_bits(averaged, all));
  edl::rated_rule const rated(rule, {{{2700, 2737}, 0.5f}});
  CHECK(rated.borders().size() == 7);
  auto const some = trained(rated, {2869});
  CHECK(check::same_bits(trained(rated, {2730, 2869}), some));
  CHECK(some[0] == all[0]);
  CHECK(some[2700] != all[2700]);
}

inline bool is_bias(std::size_t i) { return (i >= 2700 && i < 2737) || i >= 2863; }

/// What is spared has the bits of an optimiser without decay, all else those of one that decays everything.
template <class Optimizer>
void spares(Optimizer decays_all, Optimizer spares_some, Optimizer decays_none,
            bool (*spared)(std::size_t) = is_bias) {
  auto const run = [](Optimizer const& o) {
    return trained(edl::rule(o, edl::constant_rate{0.03f}, layout()), {2869});
  };
  auto const with = run(decays_all), some = run(spares_some), without = run(decays_none);
  for (std::size_t i = 0; i < 2869; ++i) {
    CAPTURE(i);
    REQUIRE(some[i] == (spared(i) ? without : with)[i]);
    REQUIRE(with[i] != without[i]);
  }
}

}  // namespace whole
