// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace edl::platform {

/// Reads what several processes write, each through a pipe of its own, and tells it line by line. A line is
/// told when it is whole. Where a process ends amid one, or a line has more than 64 KiB, what there is counts
/// as a line. Thread safety: safe.
class line_reader {
 public:
  /// `on_line` gets each line without its end, from a thread of this object. Throws edl::error when the
  /// system gives no descriptors.
  explicit line_reader(std::function<void(std::string_view line)> on_line);
  line_reader(line_reader const&) = delete;
  line_reader& operator=(line_reader const&) = delete;

  /// Tells what has been written until then.
  ~line_reader();

  /// The end of a new pipe that somebody else may write to, whom the caller gives it and then closes it. It
  /// is not inherited by programs that are started. Negative: the system gives none.
  int open();

  /// Returns when all that had been written before the call has been told. Of pipes that nobody has open any
  /// more these are also lines without an end.
  void drain();

 private:
  void read_all();
  bool take(int fd, std::string& line);

  std::function<void(std::string_view)> on_line_;
  std::mutex mutex_;
  std::condition_variable drained_;
  std::map<int, std::string> pipes_;  // and what is there of the next line
  std::uint64_t requested_ = 0, answered_ = 0;
  bool closing_ = false;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/job/platform/line_reader.ipp"
#endif
