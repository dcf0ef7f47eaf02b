// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/worker/local_rounds.hpp"

namespace edl::worker {

EDL_INLINE std::uint64_t local_rounds::pull(std::span<float> variables) {
  end_round();
  version_ = servers_.pull(variables);
  of_ = generation();
  waiting_.clear();
  start_.assign(variables.begin(), variables.end());
  return version_;
}

EDL_INLINE void local_rounds::pull_frozen(std::uint64_t version, std::span<float> variables) {
  end_round();
  servers_.pull_frozen(version, variables);
}

EDL_INLINE pushed local_rounds::push(contribution const& minibatch, std::uint64_t, view<float>, view<float>,
                                     std::span<sparse::row_gradients const> rows) {
  invariant(rows.empty(), "a model with tables has no local rounds");
  // A task may be leased to this worker again while its first minibatches wait.
  if (std::ranges::any_of(waiting_, [&](contribution const& c) { return c.key == minibatch.key; }))
    end_round();
  // Its rate has been used in the step here.
  waiting_.emplace_back(minibatch.key, minibatch.records, minibatch.skipped);
  return {false, version_};
}

EDL_INLINE void local_rounds::end_round() {
  if (pending() == 0) return;
  view<float> const now = model_.variables();
  std::size_t const parameters = model_.gradients().size();
  invariant(now.size() == start_.size() && parameters <= now.size(),
            "a round changes the variables that it has pulled");
  change_.resize(now.size());
  for (std::size_t i = 0; i < now.size(); ++i)
    change_[i] = i < parameters ? start_[i] - now[i] : now[i] - start_[i];
  if (!std::ranges::all_of(change_, [](float x) { return std::isfinite(x); }))
    throw error(
        fmt::format("after {} steps of its own from version {} this worker's weights are not finite: lower "
                    "the learning rate, or --outer_steps",
                    waiting_.size(), version_));
  view<float> const all = change_;
  servers_.push(waiting_, version_, all.first(parameters), all.subspan(parameters), {});
  version_ += waiting_.size();
  waiting_.clear();  // not before: a push that failed may be repeated
  start_.assign(now.begin(), now.end());
}

EDL_INLINE void local_rounds::idle(std::chrono::milliseconds timeout) {
  if (pending() > 0)
    end_round();
  else
    servers_.idle(timeout);
}

}  // namespace edl::worker
