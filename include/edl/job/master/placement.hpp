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

/// The server of a range, and its backup.
struct range_place {
  std::uint32_t primary = 0;
  std::optional<std::uint32_t> backup;
  friend bool operator==(range_place const&, range_place const&) = default;
};

/// Places `ranges` ranges on servers. `wanted`: the requested servers, 0 … wanted−1; `alive`: the existing
/// ones. The home of a range is the server of its number, modulo `wanted`; while that is missing, a server
/// that has the range serves it. With `copies` of 2 or more, the next existing server is its backup. A pure
/// function, so that only what must move does.
std::vector<range_place> place(std::uint32_t ranges, std::uint32_t wanted,
                               std::set<std::uint32_t> const& alive, unsigned copies,
                               range_holders const& holders);

/// Whether every range has a holder among `alive`: nothing is lost.
bool covered(std::uint32_t ranges, std::set<std::uint32_t> const& alive, range_holders const& holders);

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/placement.ipp"
#endif
