// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "edl/core/invariant.hpp"

namespace edl::replica {

/// A model's parameters, cut for sums that begin before all gradients are there. Where the cuts are follows
/// from the number of parameters alone, so that all members of a world cut alike; at cache lines' borders.
class buckets {
 public:
  struct range {
    std::size_t first, last;
    std::size_t size() const { return last - first; }
  };

  /// As many as it takes for each to have `most_bytes` at most, but for what fills its last line.
  buckets(std::size_t parameters, std::size_t most_bytes) : parameters_(parameters) {
    std::size_t const bytes = parameters * sizeof(float), most = std::max(most_bytes, sizeof(float));
    count_ = std::max((bytes + most - 1) / most, std::size_t{1});
  }

  std::size_t count() const { return count_; }
  range operator[](std::size_t index) const {
    invariant(index < count_, "a bucket is one of those there are");
    range const r{border(index), border(index + 1)};
    invariant(r.first <= r.last && r.last <= parameters_, "a bucket lies within the parameters");
    return r;
  }

  /// When gradients from number `first` on are final: the first bucket of which all are, not above `before`.
  std::size_t final_from(std::size_t first, std::size_t before) const {
    invariant(before <= count_, "what is ready before is a bucket, or none");
    while (before > 0 && border(before - 1) >= first) --before;
    return before;
  }

 private:
  static constexpr std::size_t floats_per_line = 16;

  std::size_t border(std::size_t i) const {
    std::size_t const lines = (parameters_ + floats_per_line - 1) / floats_per_line;
    return std::min(parameters_, lines * i / count_ * floats_per_line);
  }

  std::size_t parameters_, count_;
};

}  // namespace edl::replica
