// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "edl/core/invariant.hpp"

namespace edl::replica {

/// Divides a model's parameters for sums that begin before all gradients are final. The borders depend only
/// on the number of parameters, so that all members of a world use the same ones; they are at cache lines'
/// borders.
class buckets {
 public:
  struct range {
    std::size_t first, last;
    std::size_t size() const { return last - first; }
  };

  /// As many as needed for each to have at most `most_bytes`, plus the rest of its last cache line.
  buckets(std::size_t parameters, std::size_t most_bytes) : parameters_(parameters) {
    std::size_t const bytes = parameters * sizeof(float), most = std::max(most_bytes, sizeof(float));
    count_ = std::max((bytes + most - 1) / most, std::size_t{1});
  }

  std::size_t count() const { return count_; }
  range operator[](std::size_t index) const {
    invariant(index < count_, "the bucket exists");
    range const r{border(index), border(index + 1)};
    invariant(r.first <= r.last && r.last <= parameters_, "a bucket lies within the parameters");
    return r;
  }

  /// If gradients from number `first` on are final: the first complete bucket, not above `before`.
  std::size_t final_from(std::size_t first, std::size_t before) const {
    invariant(before <= count_, "buckets that were ready before exist");
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
