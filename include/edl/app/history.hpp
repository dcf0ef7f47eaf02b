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

/// The history of a training job, as `history.jsonl` has it: a row for each step that has a line, whether of
/// training, of an evaluation, or both.
struct history {
  struct row {
    std::uint64_t step = 0;
    std::vector<double> values;  ///< of the columns; NaN: none
  };
  std::string job;                   ///< its name
  std::vector<std::string> columns;  ///< the fields of lines; of metrics as "metrics.accuracy"
  std::vector<row> rows;             ///< by step
  std::vector<std::string> lines;    ///< as they stand in the file
  std::vector<std::string> notes;    ///< what was left out
};

/// What `history` is asked to do.
struct history_request {
  std::vector<std::string> paths;  ///< of each a --checkpoint_dir, or a file of this form
  std::string format, picture;     ///< "table", "json" or "csv"; the file to draw to, empty: none
  double smooth = 0;               ///< see `to_picture`
};

inline constexpr std::size_t most_histories = 5;  ///< in one picture: two lines of each can be told apart

/// Throws error where there is no history.
history read_history(std::string const& path);

/// The same from the file's text. Lines that are none are left out, with a note.
history history_from(std::string_view text, std::string const& job);

/// "table", "json" or "csv".
std::string to_text(history const& h, std::string const& format);

/// The losses, the metrics, the learning rate, the speed and the members as a picture (SVG); of several
/// trainings each panel has a line for each, by their names. Losses and metrics are means over the values
/// before, the more the larger `smooth` is, from 0 (none) to less than 1.
std::string to_picture(std::span<history const> all, double smooth = 0);

/// Prints a history, or draws one or several and says where to. Notes go to standard error.
void show(std::span<history const> all, std::string const& format, std::string const& picture,
          double smooth = 0);

/// What is asked for, of directories.
void show(history_request const& what);

/// The value of the flag `smooth`. Throws usage_error where nothing is drawn.
double smoothing_of(cli::command_line const& l);

/// The flags that say how: `output_format`, `plot` and `smooth`.
std::vector<cli::flag> history_flags(std::string const& format_flag = "output_format");

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/history.ipp"
#endif
