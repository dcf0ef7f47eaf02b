// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "edl/compute/data/test_time_augmentation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/span.hpp"

namespace edl {

EDL_INLINE void join(std::span<test_time_view const> views, std::span<float> said) {
  std::size_t const n = said.size() / views.size();
  for (std::size_t i = 0; i < views.size(); ++i) {
    float const weight = part_of(views, i);
    for (std::size_t k = 0; k < n; ++k) said[k] = weight * said[i * n + k] + (i > 0 ? said[k] : 0);
  }
}

EDL_INLINE std::vector<std::uint32_t> least_confident(view<float> outputs, std::size_t classes,
                                                      std::size_t count) {
  std::vector<std::pair<float, std::uint32_t>> doubts;  // negated 1 / softmax
  for (std::size_t at = 0; at < outputs.size(); at += classes) {
    auto const row = outputs.subspan(at, classes);
    float const most = *std::ranges::max_element(row);
    float sum = 0;
    for (float x : row) sum += std::exp(x - most);
    doubts.emplace_back(-sum, std::uint32_t(doubts.size()));
  }
  std::ranges::sort(doubts);
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < std::min(count, doubts.size()); ++i) rows.push_back(doubts[i].second);
  std::ranges::sort(rows);
  return rows;
}

}  // namespace edl
