// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

namespace edl::platform {

/// Where a process learns that its machine is about to be taken away. Thread safety: one thread at a time.
class notice_source {
 public:
  virtual ~notice_source() = default;

  struct report {
    bool answered = false;    ///< false: nobody is there who would know
    std::string notice = {};  ///< who takes the machine, and when, printable; empty: nobody
  };

  /// Looks once, for a second at most for each request, or until `stopped` returns true. Never throws.
  virtual report look(std::function<bool()> const& stopped) = 0;

  /// The pause between two looks.
  virtual std::chrono::milliseconds interval() const = 0;

  /// For log lines: "file /run/notice".
  virtual std::string name() const = 0;
};

/// The value of an environment variable; empty: not set.
using variable_reader = std::function<std::string(char const* name)>;
inline std::string system_variable(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "";
}

/// The source that `--preemption_notice` names: off (null), a cloud (`make_cloud_source`), or file:PATH, a
/// file that exists from the notice on. It may contain the time at which the machine goes
/// ("2026-11-20T10:39:00Z", or seconds since 1970), or other words for the log. Throws usage_error, which
/// quotes the text.
std::unique_ptr<notice_source> make_notice_source(std::string const& text,
                                                  variable_reader const& variable = system_variable);

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/notice_source.ipp"
#endif
