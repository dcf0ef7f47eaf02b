// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "edl/cli/screen.hpp"
#include "edl/core/inline.hpp"

namespace edl::cli {
namespace detail {

inline constexpr std::string_view erase = "\r\x1b[K", plain_again = "\x1b[m";

inline void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    auto const n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(std::size_t(n));
    } else if (errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      ::poll(&p, 1, -1);
    } else if (errno != EINTR) {
      return;  // a failure to draw stops nothing
    }
  }
}

/// One column less than the terminal has, because some terminals wrap after the last one.
inline std::size_t usable_columns(int fd) {
  winsize size{};
  bool const known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : 80u) - 1u;
}

/// Appends a log line with its level in colour.
inline void add_coloured(std::string& to, std::string_view line) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> colours{
      {{"] [WARNING] ", "\x1b[33m"}, {"] [ERROR] ", "\x1b[31m"}, {"] [CRITICAL] ", "\x1b[31m"}}};
  std::string_view const head = line.substr(0, 48);
  for (auto const& [level, colour] : colours) {
    auto const at = line.front() == '[' ? head.find(level) : head.npos;
    if (at == head.npos) continue;
    to.append(line.substr(0, at + 2)).append(colour).append(level.substr(2, level.size() - 3));
    to.append(plain_again).append(line.substr(at + level.size() - 1));
    return;
  }
  to.append(line);
}

}  // namespace detail

EDL_INLINE std::shared_ptr<screen> screen::open(int fd) {
  auto const variable = [](char const* name) {
    char const* const value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  std::string_view const kind = variable("TERM");
  if (::isatty(fd) != 1 || kind.empty() || kind == "dumb") return nullptr;
  return std::make_shared<screen>(options{.fd = fd, .colours = variable("NO_COLOR").empty()});
}

EDL_INLINE screen::~screen() { show({}); }

EDL_INLINE std::string screen::taken_away() {
  return std::string(std::exchange(shown_, false) ? detail::erase : std::string_view());
}

EDL_INLINE std::string screen::drawn() {
  std::string const line = parts_.empty() ? "" : fit(parts_, detail::usable_columns(options_.fd));
  shown_ = !line.empty();
  return line;
}

EDL_INLINE void screen::write(std::string_view lines) {
  std::lock_guard const lock(mutex_);
  std::string text = taken_away();
  while (!lines.empty()) {
    auto const size = std::min(lines.find('\n'), lines.size() - 1) + 1;
    std::string_view const line = lines.substr(0, size);
    options_.colours ? detail::add_coloured(text, line) : void(text.append(line));
    lines.remove_prefix(size);
  }
  detail::write_all(options_.fd, text += drawn());
}

EDL_INLINE void screen::show(status_line parts) {
  std::lock_guard const lock(mutex_);
  parts_ = std::move(parts);
  std::string text = taken_away();
  detail::write_all(options_.fd, text += drawn());
}

}  // namespace edl::cli
