// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace edl::master {

/// Which servers have the whole, newest state of each range of the variables.
using range_holders = std::map<std::uint32_t, std::set<std::uint32_t>>;

/// Who serves a range, and who is its backup.
struct range_place {
  std::uint32_t primary = 0;
  std::optional<std::uint32_t> backup;
  friend bool operator==(range_place const&, range_place const&) = default;
};

/// Places `ranges` ranges on servers. `wanted`: how many servers, 0 … wanted−1, there are to be; `alive`:
/// those that are there. The home of a range is the server of its number, modulo `wanted`; while it is not
/// there, one that holds the range serves it. With `copies` of 2 or more, the next server that is there is
/// its backup. A pure function, so that nothing moves but what must.
std::vector<range_place> place(std::uint32_t ranges, std::uint32_t wanted,
                               std::set<std::uint32_t> const& alive, unsigned copies,
                               range_holders const& holders);

/// Whether every range has a holder among `alive`: nothing is lost.
bool covered(std::uint32_t ranges, std::set<std::uint32_t> const& alive, range_holders const& holders);

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/placement.ipp"
#endif
