// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/cli/flag.hpp"

namespace edl::app {

/// The history of a training job, from `history.jsonl`: a row for each step with a line of training, of an
/// evaluation, or both.
struct history {
  struct row {
    std::uint64_t step = 0;
    std::vector<double> values;  ///< of the columns; NaN: none
  };
  std::string job;                   ///< its name
  std::vector<std::string> columns;  ///< the fields of lines; for metrics "metrics.accuracy"
  std::vector<row> rows;             ///< by step
  std::vector<std::string> lines;    ///< as in the file
  std::vector<std::string> notes;    ///< about lines that were left out
};

/// The arguments of `history`.
struct history_request {
  std::vector<std::string> paths;  ///< each a --checkpoint_dir, or a file of this format
  std::string format, picture;     ///< "table", "json" or "csv"; the file to draw to, empty: none
  double smooth = 0;               ///< see `to_picture`
};

inline constexpr std::size_t most_histories = 5;  ///< in one picture: two lines each remain distinguishable

/// Throws error if there is no history.
history read_history(std::string const& path);

/// The same from the file's text. Skips invalid lines, with a note.
history history_from(std::string_view text, std::string const& job);

/// "table", "json" or "csv".
std::string to_text(history const& h, std::string const& format);

/// The losses, the metrics, the learning rate, the speed and the members as a picture (SVG); for several
/// trainings each panel has a named line for each. Losses and metrics are smoothed by a running mean, the
/// more the larger `smooth` is, from 0 (none) to less than 1.
std::string to_picture(std::span<history const> all, double smooth = 0);

/// Prints a history, or draws one or several and prints the path. Notes go to standard error.
void show(std::span<history const> all, std::string const& format, std::string const& picture,
          double smooth = 0);

/// The same for a request.
void show(history_request const& what);

/// The value of the flag `smooth`. Throws usage_error if nothing is drawn.
double smoothing_of(cli::command_line const& l);

/// The output flags: `output_format`, `plot` and `smooth`.
std::vector<cli::flag> history_flags(std::string const& format_flag = "output_format");

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/history.ipp"
#endif
