// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "edl/core/span.hpp"

namespace edl::author {

/// Rows of another width than they have: what is beyond is left out, and what is missing is zeros. They lie
/// in memory of its own, which grows to the most that was ever asked for.
template <class T>
class shortened {
 public:
  /// Of rows of `from` numbers, rows of `to` numbers. Valid until the next call.
  view<T> operator()(view<T> rows, std::size_t from, std::size_t to) {
    std::size_t const n = from == 0 ? 0 : rows.size() / from, same = std::min(from, to);
    if (memory_.size() < n * to) memory_.resize(n * to);
    for (std::size_t i = 0; i < n; ++i) {
      auto const own = std::span(memory_).subspan(i * to, to);
      std::ranges::copy(rows.subspan(i * from, same), own.begin());
      std::ranges::fill(own.subspan(same), T(0));
    }
    return view<T>(memory_).first(n * to);
  }

 private:
  std::vector<T> memory_;
};

}  // namespace edl::author
