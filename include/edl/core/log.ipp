// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/log.hpp"
#include "edl/core/printable.hpp"

namespace edl {

namespace detail {
inline constexpr std::size_t longest_text = 64u << 10;
}

EDL_INLINE logger::logger(severity least, std::string name, int fd, int also)
    : logger(least, std::move(name), log_target{.fd = fd, .also = also}) {}

EDL_INLINE logger::logger(severity least, std::string name, log_target where)
    : least_(least), name_(std::move(name)), where_(std::move(where)) {}

EDL_INLINE void logger::write(severity s, std::string_view text, std::source_location const& at) const {
  if (!enabled(s)) return;
  auto const now = std::chrono::system_clock::now();
  auto const millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), "[{:%Y-%m-%d %H:%M:%S},{:03}] [{}] ",
                 fmt::localtime(std::chrono::system_clock::to_time_t(now)), millis, names(s)[std::size_t(s)]);
  if (where_.detailed) {
    std::string_view file = at.file_name(), function = at.function_name();
    file.remove_prefix(file.find_last_of('/') + 1);
    function = function.substr(0, function.find('('));
    function.remove_prefix(function.find_last_of(" :") + 1);
    fmt::format_to(std::back_inserter(line), "[{}:{}:{}] ", file, at.line(), function);
  }
  if (!name_.empty()) fmt::format_to(std::back_inserter(line), "[{}] ", name_);
  // One record, one line: a text from a peer or a file must not forge another line.
  line.append(printable(text, detail::longest_text));
  line.push_back('\n');
  put({line.data(), line.size()});
}

EDL_INLINE void logger::plain(std::string_view text) const {
  if (enabled(severity::info)) put(printable(text, detail::longest_text) + '\n');
}

EDL_INLINE void logger::put(std::string_view line) const {
  if (where_.to) where_.to->write(line);
  // One write per line keeps lines of several processes whole; a failure to log stops nothing.
  for (int fd : {where_.to ? -1 : where_.fd, where_.also})
    for (std::size_t done = 0; fd >= 0 && done < line.size();) {
      auto const n = ::write(fd, line.data() + done, line.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        int const code = errno;
        if (fd == where_.also && !lost_->exchange(true))
          warning(fmt::format("lines are missing in the log file: {}", std::strerror(code)));
        break;
      }
      done += std::size_t(n);
    }
}

}  // namespace edl
