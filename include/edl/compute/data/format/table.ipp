// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <unordered_map>

#include "edl/compute/data/format/table.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::data {

EDL_INLINE std::string detail::spelled_note(std::string const& path, std::uint64_t line,
                                            std::string_view number, std::string_view column) {
  return fmt::format(
      "{}:{}: {} does not fit 64 bits with a sign, and makes column '{}' of whole numbers a text; "
      "where floats are meant, write numbers with a point",
      path, line, edl::printable(number, 64), edl::printable(column, 64));
}

EDL_INLINE void agree(std::span<table* const> files) {
  std::vector<table_column> all;
  std::unordered_map<std::string, std::size_t> places;
  for (table const* const file : files)
    for (auto const& column : file->columns()) {
      auto const [known, fresh] = places.try_emplace(column.name, all.size());
      if (fresh) all.push_back(column);
      table_column& one = all[known->second];
      one.kind = wider(one.kind, column.kind);
      one.spelled |= column.spelled;
    }
  for (table* const file : files) file->agree(all);
}

}  // namespace edl::data
