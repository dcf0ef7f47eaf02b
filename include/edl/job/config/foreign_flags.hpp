// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// A flag of some version of ElasticDL that has no counterpart in edl.
struct foreign_flag {
  std::string_view name;
  std::string_view why;       ///< its replacement, or why there is none: one clause
  std::string_view fallback;  ///< "true" or "false" of a flag that is one of these; otherwise empty
};

/// Flags without meaning in edl: `edl` accepts them and notes that, a model's program refuses them.
std::vector<foreign_flag> const& foreign_flags();

/// Why a model's program lacks a flag `name` of ElasticDL or `edl`, with the remedy: one clause. Empty for a
/// name that neither has.
std::string why_not_here(std::string_view name);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/foreign_flags.ipp"
#endif
