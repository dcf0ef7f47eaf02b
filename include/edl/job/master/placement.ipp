// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>

#include "edl/core/inline.hpp"
#include "edl/job/master/placement.hpp"

namespace edl::master {
namespace detail {

/// The first of `among`, from `start` on and around, that is not `except`.
EDL_INLINE std::optional<std::uint32_t> next_from(std::uint32_t start, std::set<std::uint32_t> const& among,
                                                  std::optional<std::uint32_t> except = {}) {
  auto it = among.lower_bound(start);
  for (std::size_t i = 0; i < among.size(); ++i, ++it) {
    if (it == among.end()) it = among.begin();
    if (*it != except) return *it;
  }
  return std::nullopt;
}

}  // namespace detail

EDL_INLINE std::vector<range_place> place(std::uint32_t ranges, std::uint32_t wanted,
                                          std::set<std::uint32_t> const& alive, unsigned copies,
                                          range_holders const& holders) {
  std::vector<range_place> all;
  for (std::uint32_t r = 0; r < ranges && !alive.empty(); ++r) {
    std::uint32_t const home = r % std::max(1u, wanted);
    std::set<std::uint32_t> holding;
    if (auto const it = holders.find(r); it != holders.end())
      std::set_intersection(it->second.begin(), it->second.end(), alive.begin(), alive.end(),
                            std::inserter(holding, holding.end()));
    range_place p;
    p.primary = alive.contains(home) ? home
                : !holding.empty()   ? *detail::next_from(home, holding)
                                     : *detail::next_from(home, alive);
    if (copies > 1) p.backup = detail::next_from(home + 1, alive, p.primary);
    all.push_back(p);
  }
  return all;
}

EDL_INLINE bool covered(std::uint32_t ranges, std::set<std::uint32_t> const& alive,
                        range_holders const& holders) {
  for (std::uint32_t r = 0; r < ranges; ++r) {
    auto const it = holders.find(r);
    if (it == holders.end() || std::none_of(it->second.begin(), it->second.end(),
                                            [&](std::uint32_t id) { return alive.contains(id); }))
      return false;
  }
  return true;
}

}  // namespace edl::master
