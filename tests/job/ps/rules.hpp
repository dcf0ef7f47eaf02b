// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/compute/optim/rule.hpp"

/// Momentum with a rate that changes with the step, so that order, steps and slots all show.
struct momentum_rule final : edl::update_rule {
  std::vector<std::string> slots() const override { return {"momentum", "count"}; }
  float initial(std::size_t slot) const override { return slot == 0 ? 0.125f : 0.0f; }
  float learning_rate(std::uint64_t version) const override { return 0.5f / float(version + 1); }
  void apply(std::span<float> weights, edl::view<float> gradients, std::span<std::span<float> const> slots,
             float learning_rate, std::uint64_t step) const override {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      float const kept = slots[0][i] * 0.75f;
      slots[0][i] = kept + gradients[i];
      slots[1][i] = slots[1][i] + 1;
      float const move = learning_rate * slots[0][i];
      weights[i] = weights[i] - move / float(step % 5 + 1);
    }
  }
};

/// Adds gradients: the sum of whole numbers tells whether each was counted once, in whatever order.
struct adding_rule final : edl::update_rule {
  std::vector<std::string> slots() const override { return {}; }
  float initial(std::size_t) const override { return 0; }
  float learning_rate(std::uint64_t) const override { return 1; }
  void apply(std::span<float> weights, edl::view<float> gradients, std::span<std::span<float> const>,
             float rate, std::uint64_t) const override {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += rate * gradients[i];
  }
};
