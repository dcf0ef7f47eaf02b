// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "edl/compute/nn/memory_plan.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn {
namespace detail {

/// The stretches up to a step.
struct course {
  std::size_t kept = 0;
  double work = 0;
  stretch const* last = nullptr;
  std::size_t before = 0;  ///< number of the course to where `last` begins
};

/// Keeps only those for which no other needs both less memory and less work, in order of memory.
inline void leave_best(std::vector<course>& all) {
  std::ranges::sort(all, [](course const& a, course const& b) {
    return a.kept != b.kept ? a.kept < b.kept : a.work < b.work;
  });
  std::vector<course> best;
  for (course const& c : all)
    if (best.empty() || c.work < best.back().work) best.push_back(c);
  std::size_t const most = 1000, n = best.size();
  if (n > most)
    for (std::size_t i = 0; i < most; ++i) best[i] = best[i * (n - 1) / (most - 1)];
  best.resize(std::min(n, most));
  all = std::move(best);
}

/// The border between `no` and `yes`, to a thousandth: `is` tells on which side a number lies.
template <class Is>
std::size_t bisect(std::size_t no, std::size_t yes, Is const& is) {
  while (std::max(no, yes) - std::min(no, yes) > std::max(no, yes) / 1000 + 1) {
    std::size_t const middle = std::midpoint(no, yes);
    (is(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace detail

EDL_INLINE std::optional<memory_plan> cheapest_plan(planned_chain const& of, std::size_t most) {
  std::vector<std::vector<detail::course>> at(of.steps + 1);
  at[0].push_back({});
  for (std::size_t i = 0; i < of.steps; ++i) {
    detail::leave_best(at[i]);
    for (stretch const& s : of.all)
      for (std::size_t k = 0; s.first == i && k < at[i].size(); ++k)
        if (auto const& c = at[i][k]; c.kept + s.takes <= most)
          at[s.end].push_back({c.kept + s.grows, c.work + s.work, &s, k});
  }
  if (at[of.steps].empty()) return {};
  auto const best = std::ranges::min_element(at[of.steps], {}, &detail::course::work);
  memory_plan plan{std::vector<std::uint16_t>(of.steps), of.inner, best->work, 0};
  for (detail::course const* c = &*best; c->last; c = &at[c->last->first][c->before])
    for (std::size_t i = c->last->first; c->last->again && i < c->last->end; ++i, ++plan.steps)
      plan.again[i] = std::uint16_t(c->last->end);
  return plan;
}

EDL_INLINE memory_plan choose_plan(std::vector<planned_chain> const& all, budget const& most,
                                   std::function<std::size_t(memory_plan const&)> const& takes) {
  std::size_t const whole = takes({});
  std::size_t least = whole;
  std::optional<memory_plan> best;
  for (planned_chain const& of : all) {
    std::size_t enough = 1;
    for (stretch const& s : of.all)
      if (!s.again) enough += s.takes;
    std::size_t const lowest =
        detail::bisect(0, enough, [&](std::size_t m) { return cheapest_plan(of, m).has_value(); });
    // A chain's memory is not all of the network's, and parallel steps together may need more than each
    // alone. So the first bound above for which a plan fits is chosen.
    auto const fits = [&](std::size_t m) {
      std::size_t const all_take = takes(*cheapest_plan(of, m));
      least = std::min(least, all_take);
      return all_take <= most.scalars();
    };
    std::size_t fitting = lowest;
    for (int i = 1; i <= 32 && !fits(fitting); ++i)
      fitting = lowest + (enough - lowest) / 32 * std::size_t(i);
    if (!fits(fitting)) continue;
    auto plan = *cheapest_plan(of, detail::bisect(enough, fitting, fits));
    if (!best || plan.work < best->work) best = std::move(plan);
  }
  if (best) return *std::move(best);
  auto const mb = [&](std::size_t scalars) {
    return std::ceil(double(scalars * most.scalar + most.fixed) / 1e4) / 100;
  };
  std::string const takes_text =
      mb(least) < mb(whole)
          ? fmt::format(
                "{:.2f} MB at least where results are computed again, and {:.2f} "
                "MB where none is",
                mb(least), mb(whole))
          : fmt::format("{:.2f} MB, and less by no result that is computed again", mb(whole));
  std::string const less = most.keep == storage::compact   ? ""
                           : most.keep == storage::float32 ? "--activations=recomputed, or compact"
                                                           : "--activations=compact";
  throw usage_error(
      fmt::format("--memory_budget={}: the network takes {}: raise the budget, or lower --minibatch_size{}",
                  double(most.bytes) / 1e6, takes_text,
                  less.empty() ? "" : fmt::format(", or keep less by {}, which rounds", less)));
}

EDL_INLINE std::string text_of(memory_plan const& plan) {
  if (plan.again.empty()) return "nothing has to be computed again for --memory_budget";
  return fmt::format(
      "{} of {} steps{} are computed again in the backward pass: about {:.0f} % of a forward pass",
      plan.steps, plan.again.size(), plan.inner > 0 ? fmt::format(" within step {}", plan.inner) : "",
      100 * plan.work);
}

}  // namespace edl::nn
