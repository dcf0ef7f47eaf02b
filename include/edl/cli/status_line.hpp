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

/// A part of a line that shows progress. A narrow terminal omits the parts of the greatest rank.
struct status_part {
  std::string text;
  int rank = 0;
  friend bool operator==(status_part const&, status_part const&) = default;
};

using status_line = std::vector<status_part>;

/// Shows such lines; an empty one removes the line.
using status_sink = std::function<void(status_line const&)>;

/// The parts that fit into this many columns, in their order, separated by two blanks. If not even one part
/// fits, it is cut. Every byte is one column: anything but printable ASCII becomes '?'.
std::string fit(status_line const& parts, std::size_t columns);

/// Encodes a status line as one line of text between two processes, ending in a line break. No log line
/// begins like it.
std::string encode(status_line const& parts);

/// Decodes a line of `encode`, without its line break; nothing for any other line.
std::optional<status_line> decode(std::string_view line);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/status_line.ipp"
#endif
