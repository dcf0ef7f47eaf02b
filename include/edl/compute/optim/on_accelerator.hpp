// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/muon_step.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/muon.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl {

// The optimisers' rules on an accelerator: the same as their `apply`, in its memory.

inline void apply(accelerator& d, sgd const& o, std::span<float> weights, view<float> gradients,
                  std::span<std::span<float> const> slots, float rate, std::uint64_t) {
  d.sgd(weights, gradients, slots.empty() ? std::span<float>() : slots[0], rate, o.momentum, o.weight_decay,
        o.nesterov);
}

inline void apply(accelerator& d, adam const& o, std::span<float> weights, view<float> gradients,
                  std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
  double const t = double(step) + 1;
  double const corrected = std::sqrt(1 - std::pow(double(o.beta_2), t)) / (1 - std::pow(double(o.beta_1), t));
  d.adam(weights, gradients, slots[0], slots[1], o.amsgrad ? slots[2] : std::span<float>(),
         float(double(rate) * corrected), 1 - rate * o.weight_decay, o.beta_1, o.beta_2, o.epsilon);
}

inline void apply(accelerator& d, adamw const& o, std::span<float> weights, view<float> gradients,
                  std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
  apply(d, o.as_adam(), weights, gradients, slots, rate, step);
}

inline void apply(accelerator& d, adagrad const& o, std::span<float> weights, view<float> gradients,
                  std::span<std::span<float> const> slots, float rate, std::uint64_t) {
  d.adagrad(weights, gradients, slots[0], rate, 1 - rate * o.weight_decay, o.epsilon);
}

template <class Optimizer>
  requires requires(accelerator& d, Optimizer const& of, std::span<float> w, view<float> g,
                    std::span<std::span<float> const> slots) {
    apply(d, of, w, g, slots, 0.0f, std::uint64_t{});
  }
void apply(accelerator& d, lookahead<Optimizer> const& o, std::span<float> weights, view<float> gradients,
           std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
  std::span<float> const slow = slots.back();
  if (step == 0) d.move(weights, slow);
  apply(d, o.optimizer, weights, gradients, slots.first(slots.size() - 1), rate, step);
  if (float const k = o.kept_after(step); k >= 0) d.look_back(weights, slow, k);
}

/// A variable in a step; the spans contain all of its elements.
struct variable_step {
  variable const& of;
  std::span<float> weights;
  view<float> gradients;
  std::vector<std::span<float>> slots;
  float rate = 0;
  bool decays = true;  ///< if the optimiser has a decay
};

/// A step on all trained variables of a model.
inline void apply_whole(accelerator& d, muon const& o, std::span<variable_step const> all,
                        std::uint64_t step) {
  std::vector<muon_matrix> matrices;
  for (variable_step const& v : all) {
    float const decay = v.decays ? o.weight_decay : 0;
    if (auto const m = o.matrix_of(v.of)) {
      matrices.push_back({.rows = m->rows,
                          .columns = m->columns,
                          .keep = 1 - v.rate * decay,
                          .rate = v.rate * float(o.step_size(*m)),
                          .norm = float(o.norm_before(*m, step)),
                          .weights = v.weights,
                          .gradients = v.gradients,
                          .momentum = v.slots[0]});
      continue;
    }
    muon rest = o;
    rest.weight_decay = decay;
    if (o.sgd_for_rest)
      apply(d, rest.as_sgd(), v.weights, v.gradients, v.slots, v.rate, step);
    else
      apply(d, rest.as_adam(), v.weights, v.gradients, v.slots, v.rate, step);
  }
  d.muon({.momentum = o.momentum,
          .nesterov = o.nesterov,
          .iterations = o.newton_schulz_steps,
          .polynomial = o.polynomial},
         matrices);
}

/// An optimiser of whole variables whose steps an accelerator makes.
template <class Optimizer>
concept optimizes_whole_on_accelerator =
    whole_optimizer<Optimizer> &&
    requires(accelerator& d, Optimizer const& o, std::span<variable_step const> all) {
      apply_whole(d, o, all, std::uint64_t{});
    };

/// An optimiser whose step an accelerator makes.
template <class Optimizer>
concept optimizes_on_accelerator =
    requires(accelerator& d, Optimizer const& o, std::span<float> w, view<float> g,
             std::span<std::span<float> const> slots) { apply(d, o, w, g, slots, 0.0f, std::uint64_t{}); };

/// `apply`; a custom optimiser's is found by argument-dependent lookup.
template <optimizes_on_accelerator Optimizer>
void step_on(accelerator& d, Optimizer const& o, std::span<float> weights, view<float> gradients,
             std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
  apply(d, o, weights, gradients, slots, rate, step);
}

}  // namespace edl
