// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// A flag of ElasticDL's, or of another of its versions, that has no counterpart in edl.
struct foreign_flag {
  std::string_view name;
  std::string_view why;       ///< what takes its place, or why nothing does: one clause
  std::string_view fallback;  ///< "true" or "false" of a flag that is one of these; otherwise empty
};

/// Those that say nothing, wherever they are given: `edl` reads them and tells so, a model's program refuses
/// them.
std::vector<foreign_flag> const& foreign_flags();

/// Why a model's program has no flag `name` that ElasticDL or `edl` has, with the way out: one clause. Empty
/// for a name that neither has.
std::string why_not_here(std::string_view name);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/foreign_flags.ipp"
#endif
