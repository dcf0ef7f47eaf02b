// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "edl/core/inline.hpp"
#include "edl/data/table.hpp"

namespace edl::data {

EDL_INLINE void agree(std::span<table* const> files) {
  std::vector<table_column> all;
  std::unordered_map<std::string, std::size_t> places;
  for (table const* const file : files)
    for (auto const& column : file->columns()) {
      auto const [known, fresh] = places.try_emplace(column.name, all.size());
      if (fresh)
        all.push_back(column);
      else
        all[known->second].what = wider(all[known->second].what, column.what);
    }
  for (table* const file : files) file->agree(all);
}

}  // namespace edl::data
