// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace edl {

/// Lines over a common axis, as panels one below the other.
struct chart {
  struct line {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< by x; where y is no number the line has a gap
    bool steps = false;                             ///< a value holds up to the next point
  };
  struct panel {
    std::string name;  ///< with its unit
    std::vector<line> lines;
    std::optional<double> least = {}, most = {};  ///< that its axis shows at least
  };
  std::string title, x_name;
  std::vector<panel> panels;
};

/// The chart as an SVG document, light or dark as the reader's screen is. Ticks are round numbers, and labels
/// do not lie over each other. A line of very many points is drawn by its extremes.
std::string to_svg(chart const& of);

/// Round numbers (1, 2 or 5 times a power of ten apart), `most` or fewer, from `from` to `to`.
std::vector<double> round_ticks(double from, double to, std::size_t most);

/// Ticks as texts of one form: "0", "0.05"; "12k", "1.5M" for large ones.
std::vector<std::string> tick_labels(std::vector<double> const& ticks);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/chart.ipp"
#endif
