// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/nn/chain_memory.hpp"
#include "edl/compute/nn/layer.hpp"
#include "edl/compute/nn/takes_ids.hpp"

namespace edl::nn {

/// Which steps the backward pass recomputes, so that a network fits into less memory (activation
/// checkpointing: Chen et al., "Training deep nets with sublinear memory cost", 2016).
struct memory_plan {
  std::vector<std::uint16_t> again;  ///< as in `pass_size`; empty: nothing
  std::uint16_t inner = 0;           ///< likewise
  double work = 0;                   ///< its cost, about, as a share of a forward pass
  std::size_t steps = 0;             ///< number of recomputed steps

  /// The same passes with this plan, which must outlive them.
  pass_size of(pass_size size) const {
    size.again = again.empty() ? nullptr : again.data();
    size.inner = inner;
    size.tight = !again.empty();
    return size;
  }
};

/// Steps [first, end) of a chain: a stored one, or a group that is recomputed. In scalars.
struct stretch {
  std::size_t first = 0, end = 0;
  bool again = false;
  std::size_t grows = 0;  ///< stored while later steps compute
  std::size_t takes = 0;  ///< its largest use at once, besides what is stored for those before
  double work = 0;        ///< of recomputing it, as a share of a forward pass
};

/// A chain whose steps may be recomputed.
struct planned_chain {
  std::uint16_t inner = 0;  ///< as in `pass_size`
  std::size_t steps = 0;
  std::vector<stretch> all;
};

/// The plan with the least work whose stretches, in sequence from the first step to the last, take at most
/// `most` scalars. Considers at most 1,000 plans for each step.
std::optional<memory_plan> cheapest_plan(planned_chain const& of, std::size_t most);

/// Bytes that a network may take; `fixed` of them are not subject to planning. The rest is scalars of a size.
struct budget {
  std::size_t bytes = 0, fixed = 0, scalar = 0;
  storage keep = {};  ///< how results are stored: an error names a storage that takes less

  std::size_t scalars() const { return bytes > fixed ? (bytes - fixed) / scalar : 0; }
};
/// The plan with the least work, among those of each chain, that meets a budget, up to a thousandth. `takes`
/// returns the scalars that the network takes with a plan. If no plan meets it, throws edl::usage_error,
/// which names the least possible budget.
memory_plan choose_plan(std::vector<planned_chain> const& all, budget const& most,
                        std::function<std::size_t(memory_plan const&)> const& takes);

/// Describes the plan: how many of the network's steps are recomputed, and at what cost.
std::string text_of(memory_plan const& plan);

/// An estimate of a layer's work. Writing a number counts as some dozen multiplications.
template <layer L>
constexpr double work_of(L const& l, shape in) {
  shape const out = l.output(in);
  double all = 32.0 * double(out.size());
  if constexpr (container<L>)
    l.children(in, [&](auto const& child, shape s, std::string_view) {
      all += work_of(child, s);
      return true;
    });
  else if constexpr (!takes_ids<L>)  // which finds rows
    all += double(count(l, in).parameters + count(l, in).frozen) * out.height * out.width;
  return all;
}

/// The steps of a chain that may be recomputed for passes of this size, in a network with this total work.
template <class Chain>
planned_chain stretches_of(Chain const& of, shape in, pass_size size, double whole) {
  constexpr std::size_t n = Chain::length;
  size.tight = true;
  auto const asked = of.asked(in, size);
  std::vector<double> work;
  of.each_step(in, [&](auto const& s, shape from) { work.push_back(work_of(s.source(), from) / whole); });
  size.again = nullptr;
  chain_memory<n> const kept(asked.of, asked.sides, size);
  planned_chain all{0, n, {}};
  for (std::size_t first = 0; first < n; ++first) {
    std::size_t const before = kept.saved_at[first];
    auto const until = [&](std::size_t i) { return i < n ? kept.saved_at[i] : kept.saved; };
    all.all.push_back({first, first + 1, false, until(first + 1) - before, kept.takes[first] - before, 0});
    std::vector<std::uint16_t> again(n);
    stretch s{first, first, true, 0, 0, 0};
    while (++s.end < n) {
      std::fill(again.begin() + std::ptrdiff_t(first), again.begin() + std::ptrdiff_t(s.end),
                std::uint16_t(s.end));
      s.work += work[s.end - 1];
      size.again = again.data();
      chain_memory<n> const m(asked.of, asked.sides, size);
      s.grows = m.saved_at[s.end] - before;
      if (!m.begins(first) || s.grows >= until(s.end) - before) continue;
      s.takes = m.takes_alone(asked.of, first, s.end) - before;  // its neighbours may be groups, too
      all.all.push_back(s);
    }
  }
  return all;
}

/// The plan with which passes of this size take at most `budget` bytes; `fixed` of them are not subject to
/// planning. It recomputes steps of the network's own chain, or of a chain that is a step of it. Empty if
/// everything can be stored. Throws edl::usage_error if there is none.
template <class T, class Chain>
memory_plan plan_memory(Chain const& body, shape in, pass_size size, std::size_t bytes, std::size_t fixed) {
  budget const most{bytes, fixed, sizeof(T), size.keep};
  if (body.workspace(in, size) <= most.scalars()) return {};
  double const whole = work_of(body, in);
  std::vector<planned_chain> all{stretches_of(body, in, size, whole)};
  auto const sides = body.asked(in, size).sides;
  std::uint16_t index = 0;
  body.each_step(in, [&](auto const& s, shape from) {
    if constexpr (requires { s.source().asked(from, size); }) {
      all.push_back(stretches_of(s.source(), from, size.of_sides({sides[index], sides[index + 1]}), whole));
      all.back().inner = std::uint16_t(index + 1);
    } else if constexpr (requires { s.source().stretches(from, size, whole); }) {
      all.push_back(s.source().stretches(from, size.of_sides({}), whole));
      all.back().inner = std::uint16_t(index + 1);
    }
    ++index;
  });
  return choose_plan(all, most, [&](memory_plan const& p) { return body.workspace(in, p.of(size)); });
}

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/memory_plan.ipp"
#endif
