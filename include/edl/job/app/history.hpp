// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  std::string path;             ///< a --checkpoint_dir, or a file of this form
  std::string format, picture;  ///< "table", "json" or "csv"; the file to draw to, empty: none
};

/// Throws error where there is no history.
history read_history(std::string const& path);

/// The same from the file's text. Lines that are none are left out, with a note.
history history_from(std::string_view text, std::string const& job);

/// "table", "json" or "csv".
std::string to_text(history const& h, std::string const& format);

/// The losses, the metrics, the learning rate, the speed and the members as a picture (SVG).
std::string to_picture(history const& h);

/// Prints a history, or draws it and says where to. Notes go to standard error.
void show(history const& h, std::string const& format, std::string const& picture);

/// The flags that say how: `output_format` and `plot`.
std::vector<cli::flag> history_flags(std::string const& format_flag = "output_format");

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/job/app/history.ipp"
#endif
