// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/span.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::replica {

/// The step that a member was about to make when its world broke. Members with different rows make a step
/// only when all of them have all of its data. So if any has made it, each survivor can.
///
/// Thread safety: unsafe.
class pending_step {
 public:
  /// In world `of`, the step that leads to `version`: arguments of `ps::store::step`, which are copied.
  pending_step(std::uint64_t of, std::uint64_t version, std::span<contribution const> minibatches,
               view<float> sums, std::span<std::vector<sparse::row_gradients> const> rows);

  /// Whether it leads to the version of the newest copy of the model.
  bool leads_to(std::uint64_t of, std::uint64_t version) const { return of == world_ && version == version_; }

  /// Makes it; once.
  void make(ps::store& in);

 private:
  std::uint64_t world_, version_;
  std::vector<contribution> minibatches_;
  std::vector<float> sums_;
  std::vector<std::vector<std::vector<std::uint64_t>>> ids_;  // of each minibatch, of each table
  std::vector<std::vector<std::vector<float>>> gradients_;
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/pending_step.ipp"
#endif
