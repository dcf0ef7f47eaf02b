// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "edl/compute/sparse/row_bytes.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::sparse {

EDL_INLINE void append_rows(table const& from, row_cursor& at, std::uint32_t last, std::size_t most,
                            copied_rows& to) {
  auto const size = [&] { return to.rows.size() + to.candidates.size(); };
  auto const add = [](std::string& all, auto const* first, std::size_t bytes) {
    all.append(reinterpret_cast<char const*>(first), bytes);
  };
  std::size_t const end = size() + most;
  while (at.slot < last && size() < end) {
    std::uint32_t row = 0;
    bool full = false;
    for_each_by_id(from, at.slot, [&](row_header const& header, view<float> values) {
      if (row++ < at.row || full) return;
      add(to.rows, &header, sizeof header);
      add(to.rows, values.data(), values.size_bytes());
      ++at.row;
      full = size() >= end;
    });
    if (at.row < row) continue;
    from.for_each_candidate(at.slot,
                            [&](row_header const& header) { add(to.candidates, &header, sizeof header); });
    at = {at.slot + 1, 0};
  }
}

EDL_INLINE void for_each_row(bytes rows, std::size_t values,
                             std::function<void(row_header const&, view<float>)> const& visit) {
  if (rows.empty()) return;
  std::size_t const each = sizeof(row_header) + values * sizeof(float);
  if (rows.size() % each != 0)
    throw error(fmt::format("{} bytes are not a whole number of rows of {} bytes", rows.size(), each));
  std::vector<float> some(values);
  for (std::size_t i = 0; i < rows.size(); i += each) {
    row_header header;
    std::memcpy(&header, &rows[i], sizeof header);
    if (values > 0) std::memcpy(some.data(), &rows[i + sizeof header], values * sizeof(float));
    visit(header, some);
  }
}

}  // namespace edl::sparse
