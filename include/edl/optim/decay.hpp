// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"
#include "edl/optim/optimizer.hpp"

namespace edl {

/// Where a model's biases lie, ascending and without neighbours: what `decay_biases` = false is about. They
/// are trained variables of one dimension, as the gammas and betas of normalisations are, and those whose
/// name ends with "bias".
inline std::vector<element_range> biases_of(parameter_layout const& layout) {
  std::vector<element_range> all;
  for (variable const& v : layout.variables) {
    if (v.offset >= layout.parameters || (v.dims.rank > 1 && !v.name.ends_with("bias"))) continue;
    element_range const here{v.offset, v.offset + v.dims.size()};
    if (!all.empty() && all.back().last == here.first)
      all.back().last = here.last;
    else
      all.push_back(here);
  }
  return all;
}

/// Whether an optimiser decays weights, and biases not. One that only passes steps on says what its `of`
/// says.
template <class Optimizer>
constexpr bool spares_biases(Optimizer const& o) {
  if constexpr (requires { o.weight_decay, o.decay_biases; })
    return o.weight_decay != 0 && !o.decay_biases;
  else if constexpr (requires { o.of.learning_rate; })
    return spares_biases(o.of);
  else
    return false;
}

/// The same optimiser with a weight decay of 0.
template <class Optimizer>
constexpr Optimizer without_decay(Optimizer o) {
  if constexpr (requires { o.weight_decay; })
    o.weight_decay = 0;
  else if constexpr (requires { o.of.learning_rate; })
    o.of = without_decay(o.of);
  return o;
}

/// Calls step(optimiser, weights, gradients, slots) for each part of a span that begins at parameter `first`.
/// The optimiser is `o`, or `without_decay(o)` for what is of `biases`. As it goes element by element, any
/// cut of the parameters into spans gives the same bits.
template <class Optimizer, class Step>
void step_in_parts(Optimizer const& o, view<element_range> biases, std::size_t first,
                   std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
                   Step const& step) {
  auto const spared = without_decay(o);
  std::size_t const last = first + weights.size();
  auto next = std::ranges::upper_bound(biases, first, {}, &element_range::last);
  for (std::size_t at = first; at < last;) {
    bool const bias = next != biases.end() && next->first <= at;
    std::size_t const end = next == biases.end() ? last : std::min(last, bias ? next->last : next->first);
    std::array<std::span<float>, slot_list{}.of.size()> parts;
    for (std::size_t i = 0; i < slots.size(); ++i) parts[i] = slots[i].subspan(at - first, end - at);
    step(bias ? spared : o, weights.subspan(at - first, end - at), gradients.subspan(at - first, end - at),
         std::span<std::span<float> const>(parts).first(slots.size()));
    if (bias) ++next;
    at = end;
  }
}

}  // namespace edl
