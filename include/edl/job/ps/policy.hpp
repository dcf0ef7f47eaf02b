// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"

namespace edl::ps {

/// Decides when gradients become a step. Each training mode is a type. Thread safety: const, safe.
class policy {
 public:
  virtual ~policy() = default;

  /// The number of minibatches whose gradients are averaged into one step, at least 1.
  virtual std::uint32_t group() const = 0;

  /// Whether gradients computed on `computed_on` are too old for a model at `version`.
  virtual bool stale(std::uint64_t version, std::uint64_t computed_on) const = 0;

  /// The factor of the learning rate.
  virtual float rate(std::uint64_t version, std::uint64_t computed_on) const = 0;

  /// The part of a change of the state that counts.
  virtual float share(std::uint64_t version, std::uint64_t computed_on) const {
    (void)version, (void)computed_on;
    return 1;
  }

  /// How many steps the rule has made before one with this many minibatches before it.
  virtual std::uint64_t steps_made(std::uint64_t minibatches) const { return minibatches; }

  /// The rule that makes the steps; null: the model's.
  virtual update_rule const* rule() const { return nullptr; }
};

/// Every push is a step at once. With `modulate` older gradients weigh less: the rate is divided by
/// max(1, version − computed_on) (ElasticDL's --lr_staleness_modulation).
class asynchronous final : public policy {
 public:
  explicit asynchronous(bool modulate = false) : modulate_(modulate) {}

  std::uint32_t group() const override { return 1; }
  bool stale(std::uint64_t, std::uint64_t) const override { return false; }
  float rate(std::uint64_t version, std::uint64_t computed_on) const override {
    std::uint64_t const age = version > computed_on ? version - computed_on : 0;
    return modulate_ ? 1.0f / float(std::max<std::uint64_t>(1, age)) : 1.0f;
  }

 private:
  bool modulate_;
};

/// The mean of `grads_to_wait` minibatches is a step; gradients older than `tolerance` versions are refused
/// (ElasticDL's --grads_to_wait and --sync_version_tolerance).
class synchronous final : public policy {
 public:
  explicit synchronous(std::uint32_t grads_to_wait, std::uint64_t tolerance = 0)
      : group_(std::max(grads_to_wait, 1u)), tolerance_(tolerance) {}

  std::uint32_t group() const override { return group_; }
  bool stale(std::uint64_t version, std::uint64_t computed_on) const override {
    return version > computed_on && version - computed_on > tolerance_;
  }
  float rate(std::uint64_t, std::uint64_t) const override { return 1.0f; }

 private:
  std::uint32_t group_;
  std::uint64_t tolerance_;
};

/// Every push is a round of a worker's own steps (--outer_steps): its outer gradient is the sum of their
/// changes, with the sign turned, and SGD with Nesterov's momentum makes a step of it (Douillard et al.,
/// "DiLoCo: Distributed Low-Communication Training of Language Models", 2023). What others have pushed since
/// the worker pulled started from the same model. So a round of `steps` that n minibatches overtook counts
/// for steps / (steps + n): rounds of equally fast workers count as their mean, however many workers there
/// are.
class rounds final : public policy {
 public:
  rounds(std::uint32_t steps, float learning_rate, float momentum)
      : steps_(float(std::max(steps, 1u))),
        rule_(sgd{.learning_rate = learning_rate, .momentum = momentum, .nesterov = true}) {}

  std::uint32_t group() const override { return 1; }
  bool stale(std::uint64_t, std::uint64_t) const override { return false; }
  float rate(std::uint64_t version, std::uint64_t computed_on) const override {
    return steps_ / (steps_ + float(version > computed_on ? version - computed_on : 0));
  }
  float share(std::uint64_t version, std::uint64_t computed_on) const override {
    return rate(version, computed_on);
  }
  std::uint64_t steps_made(std::uint64_t minibatches) const override {
    return minibatches / std::uint64_t(steps_);
  }
  update_rule const* rule() const override { return &rule_; }

 private:
  float steps_;
  edl::rule<sgd> rule_;
};

}  // namespace edl::ps
