// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "edl/core/span.hpp"

namespace edl::author {

/// Changes the width of rows: cuts values beyond it, and fills missing ones with zeros. The result is in the
/// object's own memory, which grows to the largest size requested.
template <class T>
class shortened {
 public:
  /// Turns rows of `from` numbers into rows of `to` numbers. Valid until the next call.
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
