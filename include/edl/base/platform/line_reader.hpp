// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace edl::platform {

/// Reads the output of several processes, each through its own pipe, and passes it on line by line, as soon
/// as a line is complete. If a process ends within a line, or a line has more than 64 KiB, the part read
/// counts as a line. Thread safety: safe.
class line_reader {
 public:
  /// `on_line` gets each line without its end, from a thread of this object. Throws edl::error if the system
  /// has no descriptors left.
  explicit line_reader(std::function<void(std::string_view line)> on_line);
  line_reader(line_reader const&) = delete;
  line_reader& operator=(line_reader const&) = delete;

  /// Passes on what has been written until then.
  ~line_reader();

  /// The writing end of a new pipe, for another process; the caller passes it on and then closes it. Child
  /// programs do not inherit it. Negative: the system has none left. `last` returns its last line by
  /// `number`; 0: not needed.
  int open(std::uint64_t number = 0);

  /// Returns when everything written before the call has been passed on, including, for pipes without
  /// writers, lines without an end; or after `timeout`, because `on_line` may block on a stopped terminal.
  void drain(std::chrono::milliseconds timeout = std::chrono::hours(24));

  /// Returns and clears the last non-blank line read from pipe `number`.
  std::string last(std::uint64_t number);

 private:
  struct source {
    std::uint64_t number;
    std::string line;  // the part read of the next one
  };

  void read_all();
  void tell(source& from);
  bool take(int fd, source& from);

  std::function<void(std::string_view)> on_line_;
  std::mutex mutex_;
  std::condition_variable drained_;
  std::map<int, source> pipes_;
  std::map<std::uint64_t, std::string> last_;
  std::uint64_t requested_ = 0, answered_ = 0;
  bool closing_ = false;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/line_reader.ipp"
#endif
