// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/replica/pending_step.hpp"

namespace edl::replica {

EDL_INLINE pending_step::pending_step(std::uint64_t of, std::uint64_t version,
                                      std::span<contribution const> minibatches, view<float> sums,
                                      std::span<std::vector<sparse::row_gradients> const> rows)
    : world_(of),
      version_(version),
      minibatches_(minibatches.begin(), minibatches.end()),
      sums_(sums.begin(), sums.end()) {
  for (auto const& of_minibatch : rows) {
    auto& ids = ids_.emplace_back();
    auto& gradients = gradients_.emplace_back();
    for (sparse::row_gradients const& r : of_minibatch) {
      ids.emplace_back(r.ids.begin(), r.ids.end());
      gradients.emplace_back(r.gradients.begin(), r.gradients.end());
    }
  }
}

EDL_INLINE void pending_step::make(ps::store& in) {
  std::vector<std::vector<sparse::row_gradients>> rows(ids_.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t t = 0; t < ids_[i].size(); ++t) rows[i].push_back({ids_[i][t], gradients_[i][t]});
  in.step(minibatches_, sums_, rows);
}

}  // namespace edl::replica
