// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"

namespace edl {
namespace detail {

inline constexpr std::size_t file_chunk = std::size_t{1} << 20;

}  // namespace detail

EDL_INLINE input_file::input_file(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a pipe must not block
  if (fd_ < 0)
    throw storage_error(errno, fmt::format("cannot open {}: {}", path_, edl::detail::file_reason(errno)));
  struct stat facts{};
  int const code = ::fstat(fd_, &facts) == 0 ? 0 : errno;
  if (code != 0 || !S_ISREG(facts.st_mode)) {
    ::close(std::exchange(fd_, -1));
    throw storage_error(code ? code : EINVAL,
                        fmt::format("cannot read {}: {}", path_,
                                    code ? edl::detail::file_reason(code) : "it is not a regular file"));
  }
  size_ = std::uint64_t(facts.st_size);
}

EDL_INLINE input_file::input_file(input_file&& other) noexcept
    : path_(std::move(other.path_)), size_(other.size_), fd_(std::exchange(other.fd_, -1)) {}

EDL_INLINE input_file::~input_file() {
  if (fd_ >= 0) ::close(fd_);
}

EDL_INLINE void input_file::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    if (offset > std::uint64_t(std::numeric_limits<off_t>::max()))
      throw error(fmt::format("cannot read {} at byte {}: no file is that long", path_, offset));
    auto const n = ::pread(fd_, into.data(), std::min(into.size(), std::size_t{1} << 30), off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw storage_error(errno, fmt::format("cannot read {} at byte {}: {}", path_, offset,
                                             edl::detail::file_reason(errno)));
    if (n == 0)
      throw error(fmt::format("{} ends at byte {}, {} bytes too early", path_, offset, into.size()));
    offset += std::uint64_t(n);
    into = into.subspan(std::size_t(n));
  }
}

EDL_INLINE std::uint32_t input_file::crc32() const {
  std::vector<std::byte> chunk(std::size_t(std::min<std::uint64_t>(size_, detail::file_chunk)));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < size_;) {
    auto const part = std::span(chunk).first(std::size_t(std::min<std::uint64_t>(chunk.size(), size_ - at)));
    read(at, part);
    crc = std::uint32_t(crc32_z(crc, reinterpret_cast<Bytef const*>(part.data()), part.size()));
    at += part.size();
  }
  return crc;
}

}  // namespace edl
