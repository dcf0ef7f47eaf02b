// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/replica/row_placement.hpp"

namespace edl::replica {

EDL_INLINE slot_set slots_in(element_range slots) {
  slot_set all;
  for (std::size_t s = slots.first; s < slots.last; ++s) all.set(s);
  return all;
}

EDL_INLINE row_placement::row_placement(std::span<slot_set const> has, int copies, int wanted)
    : groups_(copies > 0 ? std::clamp(std::max(int(has.size()), wanted) / copies, 1, int(has.size())) : 1),
      group_(has.size(), -1),
      members_(std::size_t(groups_)) {
  std::vector<slot_set> share;
  for (int g = 0; g < groups_; ++g) share.push_back(slots_in(slots_of(g)));
  // Joins the smallest group, preferring one whose rows the member has.
  auto const join = [&](std::size_t rank, std::size_t most, bool only_its_own) {
    bool const any = has[rank].any() && !has[rank].all();
    int best = -1;
    bool best_own = false;
    for (int g = 0; g < groups_; ++g) {
      std::size_t const size = members_[std::size_t(g)].size();
      bool const own = any && (share[std::size_t(g)] & ~has[rank]).none();
      if (size >= most || (only_its_own && !own)) continue;
      std::size_t const least = best < 0 ? most : members_[std::size_t(best)].size();
      if (best < 0 || size < least || (size == least && own && !best_own)) best = g, best_own = own;
    }
    if (best < 0) return;
    group_[rank] = best;
    members_[std::size_t(best)].push_back(int(rank));
  };
  auto const first = std::min(has.size(), std::size_t(groups_));
  auto const pass = [&](std::size_t last, std::size_t most, bool only_its_own) {
    for (std::size_t r = 0; r < last; ++r)
      if (group_[r] < 0) join(r, most, only_its_own);
  };
  pass(first, 1, true), pass(first, 1, false);
  pass(has.size(), has.size() / std::size_t(groups_), true), pass(has.size(), has.size(), false);
  invariant(std::ranges::none_of(group_, [](int g) { return g < 0; }), "each member is in a group");
  invariant(std::ranges::none_of(members_, [](auto const& of) { return of.empty(); }),
            "each group of rows has a member");
}

}  // namespace edl::replica
