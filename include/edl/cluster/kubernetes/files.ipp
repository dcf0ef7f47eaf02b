// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
  // Do not block on a pipe that nobody writes.
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
  bool const exists = ::stat(path_.c_str(), &s) == 0;
  std::array<std::int64_t, 4> const state{std::int64_t(s.st_dev), std::int64_t(s.st_ino), s.st_size,
                                          s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec};
  if (read_ && (!exists || state == state_)) return text_;
  std::string now;
  try {
    now = read_text(path_, description_);
  } catch (error const&) {
    // The file is being replaced: the next call will read it.
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
  std::string in = text;
  std::erase_if(in, [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; });
  auto const padding = in.size() - std::min(in.size(), in.find_last_not_of('=') + 1);
  std::string out(in.size() / 4 * 3, '\0');
  // OpenSSL accepts '=' anywhere.
  bool const good = in.size() % 4 == 0 && padding <= 2 && in.find('=') >= in.size() - padding &&
                    EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                    reinterpret_cast<unsigned char const*>(in.data()), int(in.size())) >= 0;
  if (!good) throw error(what + " is damaged: it is not base64, or is truncated");
  out.resize(out.size() - padding);
  return out;
}

EDL_INLINE std::string base64_encoded(std::string const& bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  out.resize(
      std::size_t(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                  reinterpret_cast<unsigned char const*>(bytes.data()), int(bytes.size()))));
  return out;
}

}  // namespace edl::kubernetes
