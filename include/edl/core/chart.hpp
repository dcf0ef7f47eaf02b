// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace edl {

/// Lines over a common axis, in panels one below the other.
struct chart {
  struct line {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< by x; a NaN in y leaves a gap in the line
    bool steps = false;                             ///< a value holds up to the next point
  };
  struct panel {
    std::string name;  ///< with its unit
    std::vector<line> lines;
    std::optional<double> least = {}, most = {};  ///< its axis covers at least these
  };
  std::string title, x_name;
  std::vector<panel> panels;
};

/// The chart as an SVG document that follows the reader's light or dark theme. Ticks are round numbers, and
/// labels do not overlap. A line of very many points is reduced to its extremes.
std::string to_svg(chart const& of);

/// At most `most` round numbers from `from` to `to`; their distance is 1, 2 or 5 times a power of ten.
std::vector<double> round_ticks(double from, double to, std::size_t most);

/// Labels of ticks, all in one format: "0", "0.05"; "12k", "1.5M" for large ones.
std::vector<std::string> tick_labels(std::vector<double> const& ticks);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/chart.ipp"
#endif
