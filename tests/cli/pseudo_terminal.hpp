// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/terminal.hpp"

namespace terminal {

/// A pseudo-terminal whose screen is an emulator's. It is read until nobody has it open any more.
class pseudo_terminal {
 public:
  explicit pseudo_terminal(unsigned short columns) : screen_(columns) {
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::openpty(&here_, &there_, nullptr, nullptr, &size) == 0);
    thread_ = std::thread([this] { read(); });
  }
  pseudo_terminal(pseudo_terminal const&) = delete;
  ~pseudo_terminal() {
    hang_up();
    ::close(here_);
  }

  /// The end for programs.
  int there() const { return there_; }

  void type(std::string_view keys) {
    REQUIRE(::write(here_, keys.data(), keys.size()) == ssize_t(keys.size()));
  }

  void resize(unsigned short columns) {
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::ioctl(there_, TIOCSWINSZ, &size) == 0);
  }

  /// Reads what was written until all have closed it: this process, too.
  void hang_up() {
    if (there_ >= 0) ::close(there_);
    there_ = -1;
    if (thread_.joinable()) thread_.join();
  }

  emulator screen() const {
    std::lock_guard const lock(mutex_);
    return screen_;
  }

  std::size_t count(std::string const& text) const {
    std::size_t n = 0;
    for (std::string const& line : screen().lines()) n += line.find(text) != line.npos;
    return n;
  }

  /// All lines, for a message.
  std::string text() const {
    std::string all;
    for (std::string const& line : screen().lines()) all += line + '\n';
    return all;
  }

 private:
  void read() {
    char bytes[4096];
    for (;;) {
      auto const n = ::read(here_, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // EIO: nobody has it open
      std::lock_guard const lock(mutex_);
      screen_.take({bytes, std::size_t(n)});
    }
  }

  int here_ = -1, there_ = -1;
  mutable std::mutex mutex_;
  emulator screen_;
  std::thread thread_;
};

}  // namespace terminal
