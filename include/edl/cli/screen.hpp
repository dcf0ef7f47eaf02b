// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "edl/cli/status_line.hpp"
#include "edl/core/log.hpp"

namespace edl::cli {

/// A terminal: lines that stay, and below them one that is redrawn. All that is written there while the last
/// line is shown has to go this way. The last line is never wider than the terminal, whose width is asked
/// for at each drawing. Thread safety: safe.
class screen final : public line_sink {
 public:
  struct options {
    int fd = 2;           ///< an open descriptor of a terminal
    bool colours = true;  ///< the levels WARNING, ERROR and CRITICAL of log lines
  };

  /// The screen at this descriptor. Null where it is no terminal, or one that cannot redraw a line: TERM is
  /// not set, empty or `dumb`. With NO_COLOR in the environment, and not empty, there are no colours.
  static std::shared_ptr<screen> open(int fd);

  explicit screen(options o) : options_(o) {}

  /// Takes the last line away.
  ~screen() override;

  /// Writes whole lines above the last one.
  void write(std::string_view lines) override;

  /// Draws the last line anew; without parts, takes it away.
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
