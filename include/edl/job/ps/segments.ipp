// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/segments.hpp"
#include "edl/job/ps/snapshot.hpp"

namespace edl::ps {

EDL_INLINE bool segments::cover(std::vector<checkpoint::segment> const& some, element_range all) {
  std::size_t at = all.first;
  for (checkpoint::segment const& s : some) {
    if (s.elements.first != at || s.elements.last < at) return false;
    at = s.elements.last;
  }
  return !some.empty() && at == all.last;
}

EDL_INLINE void segments::start(std::vector<checkpoint::segment> of_elements,
                                std::vector<checkpoint::segment> of_rows) {
  invariant(cover(of_elements, elements_), "segments cover the elements of their store");
  all_.clear();
  auto const add = [&](checkpoint::segment& s, bool rows) {
    all_.push_back({.elements = s.elements,
                    .of_rows = rows,
                    .steps = s.steps,
                    .counted = s.ledger,
                    .applied = std::move(s.ledger)});
  };
  for (checkpoint::segment& s : of_elements) add(s, false);
  for (checkpoint::segment& s : of_rows) add(s, true);
}

EDL_INLINE std::uint64_t segments::steps() const {
  return std::ranges::min_element(all_, {}, &segment::steps)->steps;
}

EDL_INLINE bool segments::counts_next(minibatch_key const& m) const {
  return std::ranges::any_of(all_, [&](segment const& s) { return s.counts_next(m); });
}

EDL_INLINE std::optional<std::uint32_t> segments::forerunner(minibatch_key const& m) const {
  for (segment const& s : all_)
    if (s.counted.check(m) == ledger::sequence_check::gap) return s.counted.position(m.task);
  return std::nullopt;
}

EDL_INLINE void segments::check_step(std::span<contribution const> minibatches) const {
  // The preceding minibatch may have been counted before, or by this step.
  auto const follows = [&](std::size_t i) {
    minibatch_key const& m = minibatches[i].key;
    return std::ranges::any_of(minibatches.first(i), [&](contribution const& c) {
      return c.key.task == m.task && c.key.count == m.count && c.key.index + 1 == m.index;
    });
  };
  for (segment const& s : all_) {
    invariant(s.waiting.empty(), "a step of several minibatches starts with no accumulated gradients");
    for (std::size_t i = 0; i < minibatches.size(); ++i)
      if (minibatch_key const& m = minibatches[i].key;
          m.index >= m.count || (s.counted.check(m) == ledger::sequence_check::gap && !follows(i)))
        throw error(fmt::format("a step has minibatch {} of {} of task {} in epoch {}, which is not the next",
                                m.index, m.count, m.task.index, m.task.epoch));
  }
  for (std::size_t i = 0; i < minibatches.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (minibatches[k].key == minibatches[i].key)
        throw error(fmt::format("a step has minibatch {} of task {} in epoch {} twice",
                                minibatches[i].key.index, minibatches[i].key.task.index,
                                minibatches[i].key.task.epoch));
}

EDL_INLINE void segments::merge() {
  auto const alike = [](segment const& a, segment const& b) {
    return a.of_rows == b.of_rows && a.steps == b.steps && a.waiting.empty() && b.waiting.empty() &&
           a.counted == b.counted;
  };
  for (std::size_t i = 1; i < all_.size();) {
    if (alike(all_[i - 1], all_[i])) {
      invariant(all_[i - 1].applied == all_[i].applied,
                "without pending minibatches, all counted ones are applied");
      all_[i - 1].elements.last = all_[i].elements.last;
      all_.erase(all_.begin() + std::ptrdiff_t(i));
    } else {
      ++i;
    }
  }
}

EDL_INLINE void segments::drop_waiting() {
  for (segment& s : all_)
    if (!s.waiting.empty()) s.waiting.clear(), s.rows.clear(), s.counted = s.applied;
  merge();
}

EDL_INLINE bool segments::not_yet_applied(contribution const& c) const {
  return std::ranges::none_of(
      all_, [&](segment const& s) { return s.counted.check(c.key) == ledger::sequence_check::repeat; });
}

EDL_INLINE void segments::leave_out(contribution const& c, std::span<float> values) const {
  for (segment const& s : all_)
    if (!s.of_rows && s.counted.check(c.key) == ledger::sequence_check::repeat)
      std::ranges::fill(values.subspan(s.elements.first - elements_.first, s.elements.size()), 0.0f);
}

EDL_INLINE ledger segments::counted() const {
  ledger all = all_.front().counted;
  for (segment const& s : all_) all.intersect(s.counted);
  return all;
}

EDL_INLINE task_position segments::position(task_key const& task) const {
  task_position at{std::numeric_limits<std::uint32_t>::max(), true};
  for (segment const& s : all_)
    if (!s.counted.closed(task)) at = {std::min(at.applied, s.counted.position(task)), false};
  return at.closed ? task_position{0, true} : at;
}

EDL_INLINE void segments::snapshot_into(full_snapshot& all) const {
  for (segment const& s : all_)
    (s.of_rows ? all.row_segments : all.segments).push_back({s.elements, s.steps, s.applied});
}

}  // namespace edl::ps
