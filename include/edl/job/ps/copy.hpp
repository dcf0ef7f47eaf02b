// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/job/ps/snapshot.hpp"

namespace edl::ps {

/// Encodes the message that precedes a store's variables and slots when another store copies them
/// (`wire::CopyReply`); the other function decodes it. Throws error, which names `from`, for an invalid
/// message.
std::string describe_copy(full_snapshot const& what);
struct copied_segments {
  std::vector<checkpoint::segment> segments, row_segments;
};
copied_segments segments_of_copy(std::string const& message, std::string_view from);

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/copy.ipp"
#endif
