// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace edl::cli {

/// A part of a line that says how far something is. On a narrow terminal the parts of the greatest rank are
/// left out.
struct status_part {
  std::string text;
  int rank = 0;
  friend bool operator==(status_part const&, status_part const&) = default;
};

using status_line = std::vector<status_part>;

/// Where such lines are shown; an empty one takes the line away.
using status_sink = std::function<void(status_line const&)>;

/// The parts that fit into so many columns, in their order, with two blanks between. Where not even one part
/// fits, it is cut. Every byte is one column: what is not printable ASCII becomes '?'.
std::string fit(status_line const& parts, std::size_t columns);

/// A status line as one line of text between two processes: no log line begins as it does. It ends with a
/// line break.
std::string encode(status_line const& parts);

/// What `encode` has made, without its line break; nothing: it is another line.
std::optional<status_line> decode(std::string_view line);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/status_line.ipp"
#endif
