// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace edl {

enum class severity { debug, info, warning, error, critical };

constexpr std::array<std::string_view, 5> names(severity) {
  return {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
}

/// Receives a logger's lines in place of a descriptor. Thread safety: safe.
class line_sink {
 public:
  line_sink() = default;
  line_sink(line_sink const&) = delete;
  line_sink& operator=(line_sink const&) = delete;
  virtual ~line_sink() = default;

  /// Receives whole lines; the last one ends in a line break, too.
  virtual void write(std::string_view lines) = 0;
};

/// Where a logger writes its lines, and what they contain.
struct log_target {
  int fd = 2;                          ///< an open descriptor
  int also = -1;                       ///< a second one; negative: none
  bool detailed = true;                ///< each line has its place in the source
  std::shared_ptr<line_sink> to = {};  ///< replaces `fd`; null: none
};

/// Writes lines that a person can grep, `[2026-11-20 13:00:00,123] [INFO] [file.ipp:12:function] text`, to a
/// descriptor, standard error by default. A copy writes to the same place. If a line cannot be written to the
/// second place, the logger reports it on the first one, once. Thread safety: distinct and shared objects:
/// safe; lines are never interleaved.
class logger {
 public:
  /// A logger to the open file descriptor `fd`, and to `also` unless it is negative. It drops lines below
  /// `least`. `name` is the name of the process within the job, e.g. "worker-0"; an empty name is left out of
  /// the lines.
  explicit logger(severity least = severity::info, std::string name = {}, int fd = 2, int also = -1);
  logger(severity least, std::string name, log_target where);

  void debug(std::string_view text, std::source_location at = std::source_location::current()) const {
    write(severity::debug, text, at);
  }
  void info(std::string_view text, std::source_location at = std::source_location::current()) const {
    write(severity::info, text, at);
  }
  void warning(std::string_view text, std::source_location at = std::source_location::current()) const {
    write(severity::warning, text, at);
  }
  void error(std::string_view text, std::source_location at = std::source_location::current()) const {
    write(severity::error, text, at);
  }

  void log(severity s, std::string_view text,
           std::source_location at = std::source_location::current()) const {
    write(s, text, at);
  }

  /// Writes the text without a prefix, if the level `info` is written.
  void plain(std::string_view text) const;

  bool enabled(severity s) const { return s >= least_; }

  /// Whether lines contain their place in the source.
  bool detailed() const { return where_.detailed; }

 private:
  void write(severity s, std::string_view text, std::source_location const& at) const;
  void put(std::string_view line) const;

  severity least_;
  std::string name_;
  log_target where_;
  std::shared_ptr<std::atomic<bool>> lost_ =
      std::make_shared<std::atomic<bool>>(false);  // of the second place
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/log.ipp"
#endif
