// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/optim/name_patterns.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

namespace edl {

namespace detail {

/// The ranges of the trained variables for which `are` returns true, ascending and not adjacent.
template <class Are>
std::vector<element_range> ranges_of(parameter_layout const& layout, Are const& are) {
  std::vector<element_range> all;
  for (variable const& v : layout.variables) {
    if (v.offset >= layout.parameters || !are(v)) continue;
    element_range const here{v.offset, v.offset + v.dims.size()};
    if (!all.empty() && all.back().last == here.first)
      all.back().last = here.last;
    else
      all.push_back(here);
  }
  return all;
}

/// The variables that `decay_biases` = false excludes: those of one dimension, like gammas and betas of
/// normalisations, and those whose name ends with "bias".
inline bool is_bias(variable const& v) { return v.dims.rank <= 1 || v.name.ends_with("bias"); }

}  // namespace detail

/// Whether an optimiser decays weights but not biases. A wrapper returns the answer of its inner optimiser.
template <class Optimizer>
constexpr bool spares_biases(Optimizer const& o) {
  if constexpr (requires { o.weight_decay, o.decay_biases; })
    return o.weight_decay != 0 && !o.decay_biases;
  else if constexpr (requires { o.optimizer.learning_rate; })
    return spares_biases(o.optimizer);
  else
    return false;
}

/// The option `exclude_from_weight_decay` of an optimiser: names of variables and tables that do not decay,
/// or patterns as in --freeze, separated by ','. A wrapper returns its inner optimiser's.
template <class Optimizer>
constexpr std::string_view excluded_from_decay(Optimizer const& o) {
  if constexpr (requires { o.exclude_from_weight_decay; })
    return o.exclude_from_weight_decay;
  else if constexpr (requires { o.optimizer.learning_rate; })
    return excluded_from_decay(o.optimizer);
  else
    return {};
}

/// Whether an optimiser decays weights at all.
template <class Optimizer>
constexpr bool decays(Optimizer const& o) {
  if constexpr (requires { o.weight_decay; })
    return o.weight_decay != 0;
  else if constexpr (requires { o.optimizer.learning_rate; })
    return decays(o.optimizer);
  else
    return false;
}

/// The ranges of the variables that an optimiser trains without its weight decay, ascending and not adjacent;
/// empty if it has no decay.
template <class Optimizer>
std::vector<element_range> spared_from_decay(Optimizer const& o, parameter_layout const& layout) {
  std::string_view const names = excluded_from_decay(o);
  bool const biases = spares_biases(o);
  if (!decays(o) || (!biases && names.empty())) return {};
  return detail::ranges_of(layout, [&](variable const& v) {
    return (biases && detail::is_bias(v)) || matches_name(names, v.name);
  });
}

/// Throws error if a pattern of `names` matches no trained variable or table.
inline void check_excluded_from_decay(std::string_view names, parameter_layout const& layout) {
  if (names.empty()) return;
  std::vector<std::string> known;
  for (variable const& v : layout.variables)
    if (v.offset < layout.parameters) known.push_back(v.name);
  for (table_shape const& t : layout.tables) known.push_back(t.name);
  matching_names(known, names, "exclude_from_weight_decay of the model's optimizer",
                 "variable or table that is trained");
}

/// The same optimiser with a weight decay of 0.
template <class Optimizer>
constexpr Optimizer without_decay(Optimizer o) {
  if constexpr (requires { o.weight_decay; })
    o.weight_decay = 0;
  else if constexpr (requires { o.optimizer.learning_rate; })
    o.optimizer = without_decay(o.optimizer);
  return o;
}

/// Calls step(optimiser, weights, gradients, slots) for each part of a span that begins at parameter `first`.
/// The optimiser is `o`, or `without_decay(o)` within `ranges`. Because it works element by element, any
/// division of the parameters into spans gives bitwise equal results.
template <class Optimizer, class Step>
void step_in_parts(Optimizer const& o, view<element_range> ranges, std::size_t first,
                   std::span<float> weights, view<float> gradients, std::span<std::span<float> const> slots,
                   Step const& step) {
  auto const spared = without_decay(o);
  std::size_t const last = first + weights.size();
  auto next = std::ranges::upper_bound(ranges, first, {}, &element_range::last);
  for (std::size_t at = first; at < last;) {
    bool const within = next != ranges.end() && next->first <= at;
    std::size_t const end = next == ranges.end() ? last : std::min(last, within ? next->last : next->first);
    std::array<std::span<float>, slot_list{}.slots.size()> parts;
    for (std::size_t i = 0; i < slots.size(); ++i) parts[i] = slots[i].subspan(at - first, end - at);
    step(within ? spared : o, weights.subspan(at - first, end - at), gradients.subspan(at - first, end - at),
         std::span<std::span<float> const>(parts).first(slots.size()));
    if (within) ++next;
    at = end;
  }
}

}  // namespace edl
