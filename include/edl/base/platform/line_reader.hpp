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
  /// is not inherited by programs that are started. Negative: the system gives none. `last` gives what came
  /// last through it by its `number`; 0: nobody will ask.
  int open(std::uint64_t number = 0);

  /// Returns when all that had been written before the call has been told. Of pipes that nobody has open any
  /// more these are also lines without an end. Returns when `timeout` is over, too: `on_line` may wait for a
  /// terminal that is held.
  void drain(std::chrono::milliseconds timeout = std::chrono::hours(24));

  /// The last line of pipe `number` that has been read and is not blank, and forgets it.
  std::string last(std::uint64_t number);

 private:
  struct source {
    std::uint64_t number;
    std::string line;  // what is there of the next one
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
