// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/job/train/local/store_link.hpp"

namespace edl::train {

EDL_INLINE ps::snapshot frozen_or_current(ps::store& of, std::uint64_t version) {
  return version == of.version() ? of.averaged() : of.frozen().evaluation(version);
}

EDL_INLINE std::uint64_t store_link::pull(std::span<float> variables) {
  std::ranges::copy(store_.current(), variables.begin());
  return store_.version();
}

EDL_INLINE void store_link::pull_frozen(std::uint64_t version, std::span<float> variables) {
  std::ranges::copy(frozen_or_current(store_, version).variables(), variables.begin());
}

EDL_INLINE void store_link::pull_rows(sparse::minibatch_rows& rows) {
  for (std::size_t t = 0; t < rows.tables(); ++t) store_.rows().pull(t, rows.ids(t), rows.rows(t));
}

EDL_INLINE worker::pushed store_link::push(contribution const& minibatch, std::uint64_t version,
                                           view<float> gradients, view<float> state_change,
                                           std::span<sparse::row_gradients const> rows) {
  pushing_();
  ps::push_result const r = store_.push(minibatch, version, gradients, state_change, rows);
  pushed_(r);
  if (seen_) seen_(r.version, gradients);
  return {.stale = r.outcome == ps::push_outcome::stale, .version = r.version};
}

EDL_INLINE std::uint32_t store_link::position(task_key const& task, std::uint32_t minibatches) {
  auto const at = store_.segments().position(task);
  return at.closed ? minibatches : at.applied;
}

}  // namespace edl::train
