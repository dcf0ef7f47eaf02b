// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <source_location>
#include <string>
#include <string_view>

namespace edl {

enum class severity { debug, info, warning, error, critical };

constexpr std::array<std::string_view, 5> names(severity) {
  return {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
}

/// Writes lines a person can grep, `[2026-11-20 13:00:00,123] [INFO] [file.ipp:12:function] text`, to a
/// stream (standard error, unless told otherwise). A copy writes to the same place. Thread safety: distinct
/// and shared objects: safe; a line is written whole.
class logger {
 public:
  /// A logger to the open file descriptor `fd`, and to `also` unless it is negative, that drops what is less
  /// than `least`. `name` is the process in the job, e.g. "worker-0"; empty leaves it out of the lines.
  explicit logger(severity least = severity::info, std::string name = {}, int fd = 2, int also = -1);

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

  bool enabled(severity s) const { return s >= least_; }

 private:
  void write(severity s, std::string_view text, std::source_location const& at) const;

  severity least_;
  std::string name_;
  int fd_, also_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/log.ipp"
#endif
