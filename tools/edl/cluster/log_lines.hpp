// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace edl::tool {

/// Cuts pieces of any length into lines. A line longer than 1 MiB is cut.
class line_splitter {
 public:
  template <class To>
  void take(std::string_view piece, To&& to) {
    for (std::size_t end; (end = piece.find('\n')) != piece.npos; piece.remove_prefix(end + 1)) {
      rest_.append(piece.substr(0, end));
      to(std::string_view(rest_));
      rest_.clear();
    }
    rest_.append(piece);
    if (rest_.size() > 1u << 20) this->end(to);
  }
  template <class To>
  void end(To&& to) {
    if (!rest_.empty()) to(std::string_view(rest_));
    rest_.clear();
  }

 private:
  std::string rest_;
};

/// Where a reader of a pod's log is, so that a log that breaks off goes on after the last line. The place is
/// the time that the kubelet writes before each line (`timestamps=true`).
class log_place {
 public:
  /// What to ask for as `sinceTime`: whole seconds, which is all that the server takes. Empty: from the
  /// start.
  std::string since() const;

  /// The log is about to be read again, from `since()`.
  void reread();

  /// The line without its time; nothing when it has been returned before.
  std::optional<std::string> next(std::string_view line);

 private:
  using time = std::chrono::system_clock::time_point;
  std::string text_;  // of the last line's time
  time last_{};
  std::size_t at_last_ = 0;  // lines that bear it
  std::size_t skip_ = 0;     // of those, when read again
};

}  // namespace edl::tool
