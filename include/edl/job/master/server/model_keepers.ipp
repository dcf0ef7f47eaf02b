// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/core/inline.hpp"
#include "edl/job/master/server/model_keepers.hpp"

namespace edl::master {

EDL_INLINE bool model_keepers::takes_part(keeper const& k) const {
  return (replicas_ ? decisions_.workers() : decisions_.servers()).known(k.id, k.incarnation);
}

EDL_INLINE void model_keepers::forget_gone() {
  std::erase_if(peers_, [&](auto const& one) {
    if (takes_part({.id = one.first, .incarnation = one.second.incarnation})) return false;
    one.second.to->close();
    return true;
  });
}

EDL_INLINE std::optional<keeper> model_keepers::find(std::uint32_t id, std::uint32_t range) const {
  auto const it = peers_.find(id);
  if (it == peers_.end()) return std::nullopt;
  return keeper{it->second.to, range, id, it->second.incarnation};
}

EDL_INLINE std::vector<keeper> model_keepers::all(bool one) const {
  std::vector<keeper> found;
  auto const add = [&](std::uint32_t id, std::uint32_t range) {
    if (auto const k = find(id, range)) found.push_back(*k);
  };
  if (replicas_) {
    auto members = decisions_.current_world().members;
    if (one) std::ranges::stable_partition(members, [](world::member const& m) { return m.current; });
    for (world::member const& m : members) add(m.id, 0);
    if (one && found.size() > 1) found.resize(1);
  } else {
    auto const& places = decisions_.generations().places();
    for (std::uint32_t r = 0; r < places.size(); ++r) add(places[r].primary, r);
  }
  return found;
}

EDL_INLINE std::vector<keeper> model_keepers::holders(std::uint64_t version) const {
  if (!replicas_) return all();
  std::vector<keeper> found;
  for (std::uint32_t const id : decisions_.generations().worlds().holders(version))
    if (auto const k = find(id)) found.push_back(*k);
  return found;
}

}  // namespace edl::master
