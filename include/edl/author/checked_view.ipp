// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/author/checked_view.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/record_feature.hpp"

namespace edl::detail {

EDL_INLINE std::string shown_input(std::string_view name) {
  return name.empty() ? std::string("the network's input") : fmt::format("input '{}'", name);
}

EDL_INLINE void refuse_place(std::string_view input, std::int64_t at, std::size_t size) {
  throw data_error(fmt::format(
      "{} has no place {}, which `feed` writes: the network has {} of a record, from 0 on; cut the record's "
      "values in `feed`, or make the network's input larger",
      shown_input(input), at, size));
}

EDL_INLINE void refuse_shape(std::string_view input, std::span<std::size_t const> got,
                             std::span<std::size_t const> wanted) {
  auto const count = [](std::span<std::size_t const> of) {
    std::size_t n = 1;
    for (std::size_t e : of) n *= e;
    return n;
  };
  auto const values = [&](std::span<std::size_t const> of) {
    return of.size() == 1 ? fmt::format("{}", of[0])
                          : fmt::format("{} ({})", count(of), fmt::join(of, " × "));
  };
  throw count_error(fmt::format("{} gets {} values from `feed`, but the network takes {}", shown_input(input),
                                values(got), values(wanted)),
                    count(wanted));
}

}  // namespace edl::detail
