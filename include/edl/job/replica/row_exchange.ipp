// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/replica/row_exchange.hpp"

namespace edl::replica {
namespace detail {

inline constexpr std::size_t floats_per_id = 4;

}  // namespace detail

EDL_INLINE row_exchange::row_exchange(std::vector<table_shape> const& tables, std::size_t places)
    : fixed_places_(places) {
  for (table_shape const& t : tables) widths_.push_back(std::size_t(t.width));
}

EDL_INLINE void row_exchange::forget() {
  mine_.resize(own_.count);
  for (brought& b : mine_) {
    b.any = false;
    b.ids.assign(widths_.size(), {});
    b.gradients.assign(widths_.size(), {});
  }
}

EDL_INLINE void row_exchange::enter(int size, int rank) {
  places_ = fixed_places_ > 0 ? fixed_places_ : std::size_t(size);
  own_ = collective::share_of(places_, size, rank);
  invariant(own_.first + own_.count <= places_, "own places are among all places");
  forget();
}

EDL_INLINE void row_exchange::bring(std::size_t place, std::span<sparse::row_gradients const> rows,
                                    float weight) {
  brought& b = mine_.at(place);
  invariant(!b.any, "a place of a step takes the rows of one minibatch");
  invariant(rows.size() == widths_.size(), "a minibatch brings rows of every table");
  b.any = true;
  for (std::size_t t = 0; t < widths_.size(); ++t) {
    invariant(rows[t].gradients.size() == rows[t].ids.size() * widths_[t],
              "each row that is brought has a gradient of its table's width");
    b.ids[t].assign(rows[t].ids.begin(), rows[t].ids.end());
    b.gradients[t].resize(rows[t].gradients.size());
    std::ranges::transform(rows[t].gradients, b.gradients[t].begin(), [&](float g) { return g * weight; });
  }
}

EDL_INLINE std::vector<std::vector<sparse::row_gradients>> row_exchange::exchange(collective::group& with) {
  invariant(mine_.size() == own_.count, "each own place has its rows");
  // For each place: whether it has any rows; then for each table the number of rows, in two floats of 16
  // bits.
  std::size_t const tables = widths_.size(), per_place = 1 + 2 * tables;
  counts_.assign(places_ * per_place, 0);
  for (std::size_t i = 0; i < own_.count; ++i) {
    if (!mine_[i].any) continue;
    float* const c = &counts_[(own_.first + i) * per_place];
    c[0] = 1;
    for (std::size_t t = 0; t < tables; ++t) {
      auto const n = std::uint32_t(mine_[i].ids[t].size());
      c[1 + 2 * t] = float(n & 0xffff), c[2 + 2 * t] = float(n >> 16);
    }
  }
  with.all_reduce(counts_);
  auto const rows_of = [&](std::size_t place, std::size_t t) {
    float const* const c = &counts_[place * per_place];
    return std::size_t(c[1 + 2 * t]) | std::size_t(c[2 + 2 * t]) << 16;
  };

  std::size_t rows = 0, floats = 0;
  for (std::size_t p = 0; p < places_; ++p)
    for (std::size_t t = 0; t < tables; ++t) {
      rows += rows_of(p, t);
      floats += rows_of(p, t) * (detail::floats_per_id + widths_[t]);
    }
  all_.assign(floats, 0);
  auto const each = [&](auto const& visit) {  // visit(place, table, offset of its floats, rows)
    std::size_t at = 0;
    for (std::size_t p = 0; p < places_; ++p)
      for (std::size_t t = 0; t < tables; ++t) {
        std::size_t const n = rows_of(p, t);
        visit(p, t, at, n);
        at += n * (detail::floats_per_id + widths_[t]);
      }
  };
  each([&](std::size_t p, std::size_t t, std::size_t at, std::size_t n) {
    if (p < own_.first || p >= own_.first + own_.count) return;
    brought const& b = mine_[p - own_.first];
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < detail::floats_per_id; ++k)
        all_[at + i * detail::floats_per_id + k] = float(b.ids[t][i] >> (16 * k) & 0xffff);
    std::ranges::copy(b.gradients[t], all_.begin() + std::ptrdiff_t(at + n * detail::floats_per_id));
  });
  if (floats > 0) with.all_reduce(all_);
  forget();

  ids_.resize(rows);
  std::vector<std::vector<sparse::row_gradients>> out;
  std::size_t next = 0;
  each([&](std::size_t p, std::size_t t, std::size_t at, std::size_t n) {
    if (counts_[p * per_place] != 1) return;
    if (t == 0) out.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t id = 0;
      for (std::size_t k = 0; k < detail::floats_per_id; ++k)
        id |= std::uint64_t(all_[at + i * detail::floats_per_id + k]) << (16 * k);
      ids_[next + i] = id;
    }
    out.back().push_back({view<std::uint64_t>(ids_).subspan(next, n),
                          view<float>(all_).subspan(at + n * detail::floats_per_id, n * widths_[t])});
    next += n;
  });
  invariant(next <= rows && out.size() <= places_, "rows are exchanged as they were counted");
  return out;
}

}  // namespace edl::replica
