// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/sparse/divided_rows.hpp"
#include "edl/compute/sparse/hash.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/partition.hpp"

namespace edl::sparse {

EDL_INLINE divided_rows::divided_rows(std::span<table_shape const> tables, std::uint32_t parts)
    : part_of_(hash_slots), shares_(parts * tables.size()) {
  for (table_shape const& t : tables) widths_.push_back(std::size_t(t.width));
  for (std::uint32_t part = 0; part < parts; ++part) {
    element_range const slots = partition(hash_slots, parts, part);
    std::fill(part_of_.begin() + std::ptrdiff_t(slots.first), part_of_.begin() + std::ptrdiff_t(slots.last),
              part);
  }
}

EDL_INLINE void divided_rows::divide(std::size_t table, view<std::uint64_t> ids) {
  invariant(table < tables(), "the table whose rows are divided exists");
  std::size_t const parts = shares_.size() / tables();
  for (std::size_t p = 0; p < parts; ++p) share(p, table).ids.clear(), share(p, table).places.clear();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    one_share& s = share(part_of_[id_hash(ids[i]).slot()], table);
    s.ids.push_back(ids[i]);
    s.places.push_back(std::uint32_t(i));
  }
  for (std::size_t p = 0; p < parts; ++p)
    share(p, table).values.resize(share(p, table).ids.size() * widths_[table]);
}

EDL_INLINE void divided_rows::scatter(std::size_t table, view<float> from) {
  invariant(table < tables(), "the table whose values are scattered exists");
  std::size_t const width = widths_[table];
  for (std::size_t p = 0; p < shares_.size() / tables(); ++p) {
    one_share& s = share(p, table);
    invariant(s.values.size() == s.places.size() * width, "each row of a share has its values");
    for (std::size_t i = 0; i < s.places.size(); ++i)
      std::copy_n(&from[s.places[i] * width], width, &s.values[i * width]);
  }
}

EDL_INLINE void divided_rows::gather(std::size_t table, std::span<float> to) const {
  std::size_t const width = widths_[table];
  for (std::size_t p = 0; p < shares_.size() / tables(); ++p) {
    one_share const& s = share(p, table);
    invariant(s.values.size() == s.places.size() * width, "each row of a share has its values");
    for (std::size_t i = 0; i < s.places.size(); ++i)
      std::copy_n(&s.values[i * width], width, &to[s.places[i] * width]);
  }
}

}  // namespace edl::sparse
