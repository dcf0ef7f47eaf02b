// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "edl/cli/status_line.hpp"
#include "edl/core/log.hpp"

namespace edl::cli {

/// A terminal with lines that stay and, below them, a status line that is redrawn. While the status line
/// shows, all output to the terminal must go through this class. The status line is never wider than the
/// terminal, whose width is read at each drawing. Thread safety: safe.
class screen final : public line_sink {
 public:
  struct options {
    int fd = 2;           ///< an open descriptor of a terminal
    bool colours = true;  ///< the levels WARNING, ERROR and CRITICAL of log lines
  };

  /// The screen at this descriptor. Null if it is not a terminal, or one that cannot redraw a line: TERM is
  /// unset, empty or `dumb`. A non-empty NO_COLOR in the environment turns colours off.
  static std::shared_ptr<screen> open(int fd);

  explicit screen(options o) : options_(o) {}

  /// Removes the status line.
  ~screen() override;

  /// Writes whole lines above the status line.
  void write(std::string_view lines) override;

  /// Redraws the status line; without parts, removes it.
  void show(status_line parts);

 private:
  std::string taken_away();
  std::string drawn();

  std::mutex mutex_;
  options options_;
  status_line parts_;
  bool shown_ = false;
};

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/screen.ipp"
#endif
