// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "edl/cluster/kubernetes/files.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::kubernetes {

EDL_INLINE std::string read_text(std::string const& path, std::string const& what) {
  constexpr std::size_t longest = 16 << 20;
  auto const bad = [&](char const* why) {
    return error(fmt::format("{}: the file '{}' cannot be read: {}", what, path, why));
  };
  // Not to wait for somebody to write to a pipe.
  int const fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw bad(std::strerror(errno));
  std::string text;
  char buffer[16 << 10];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0 && text.size() <= longest)
    text.append(buffer, std::size_t(n));
  int const code = errno;
  ::close(fd);
  if (n < 0) throw bad(std::strerror(code));
  if (text.size() > longest) throw bad("it is larger than 16 MiB");
  return text;
}

EDL_INLINE watched_file::watched_file(std::string path, std::string what)
    : path_(std::move(path)), description_(std::move(what)) {}

EDL_INLINE std::string const& watched_file::text() {
  changed_ = false;
  struct stat s{};
  bool const there = ::stat(path_.c_str(), &s) == 0;
  std::array<std::int64_t, 4> const state{std::int64_t(s.st_dev), std::int64_t(s.st_ino), s.st_size,
                                          s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec};
  if (read_ && (!there || state == state_)) return text_;
  std::string now;
  try {
    now = read_text(path_, description_);
  } catch (error const&) {
    // It is being replaced just now: the next call will find it.
    if (read_) return text_;
    throw;
  }
  changed_ = !read_ || now != text_;
  text_ = std::move(now);
  state_ = state;
  read_ = true;
  return text_;
}

EDL_INLINE std::string base64_decoded(std::string const& text, std::string const& what) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0, digits = 0, padding = 0;
  for (char c : text) {
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    if (c >= '0' && c <= '9') value = c - '0' + 52;
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    if (value < 0 || padding) throw error(what + " is damaged: it is no base64");
    bits = bits << 6 | std::uint32_t(value);
    ++digits;
    held += 6;
    if (held >= 8) out.push_back(char(bits >> (held -= 8)));
  }
  if ((digits + padding) % 4 != 0 || padding > 2)
    throw error(what + " is damaged: it is base64 that was cut off");
  return out;
}

EDL_INLINE std::string base64_encoded(std::string const& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6;) out.push_back(digits[bits >> (held -= 6) & 63]);
  }
  if (held) out.push_back(digits[bits << (6 - held) & 63]);
  while (out.size() % 4) out.push_back('=');
  return out;
}

}  // namespace edl::kubernetes
