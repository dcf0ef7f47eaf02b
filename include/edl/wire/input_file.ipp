// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/wire/durable_file.hpp"

namespace edl::wire {
namespace detail {

inline constexpr std::string_view temporary_mark = ".tmp-";
inline constexpr std::size_t temporary_digits = 16;
inline constexpr std::size_t file_chunk = std::size_t{1} << 20;

EDL_INLINE std::string reason(int code) {
  std::string text = std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT || code == EFBIG)
    text += "; make room there or choose another directory";
  return text;
}

EDL_INLINE std::uint32_t extend_crc32(std::uint32_t crc, bytes data) {
  return std::uint32_t(crc32_z(crc, reinterpret_cast<Bytef const*>(data.data()), data.size()));
}

}  // namespace detail

EDL_INLINE durable_file::durable_file(std::string path) : path_(std::move(path)) {
  std::random_device device;
  std::uint64_t const tag = std::uint64_t{device()} << 32 | device();
  temporary_ = fmt::format("{}{}{:016x}", path_, detail::temporary_mark, tag);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) throw error(fmt::format("cannot create {}: {}", temporary_, detail::reason(errno)));
}

EDL_INLINE durable_file::~durable_file() { discard(); }

EDL_INLINE void durable_file::discard() noexcept {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
}

EDL_INLINE void durable_file::write(bytes data) {
  if (fd_ < 0) throw error(fmt::format("cannot write {}: it is closed", path_));
  while (!data.empty()) {
    bytes const chunk = data.first(std::min(data.size(), detail::file_chunk));
    auto const n = ::write(fd_, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int const code = n < 0 ? errno : EIO;
      discard();
      throw error(fmt::format("cannot write {} at byte {}: {}", path_, size_, detail::reason(code)));
    }
    crc32_ = detail::extend_crc32(crc32_, chunk.first(std::size_t(n)));
    size_ += std::uint64_t(n);
    data = data.subspan(std::size_t(n));
  }
}

EDL_INLINE void durable_file::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

EDL_INLINE void durable_file::commit() {
  if (fd_ < 0) throw error(fmt::format("cannot write {}: it is closed", path_));
  int code = ::fsync(fd_) == 0 ? 0 : errno;
  // Some network file systems tell only now that the disk is full.
  if (::close(std::exchange(fd_, -1)) != 0 && code == 0) code = errno;
  if (code == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temporary_.c_str());
    throw error(fmt::format("cannot complete {}: {}", path_, detail::reason(code)));
  }
  auto const slash = path_.rfind('/');
  sync_directory(slash == std::string::npos ? "." : path_.substr(0, slash + 1));
}

EDL_INLINE bool is_temporary(std::string_view name) {
  auto const mark = name.rfind(detail::temporary_mark);
  if (mark == std::string_view::npos) return false;
  auto const tag = name.substr(mark + detail::temporary_mark.size());
  return tag.size() == detail::temporary_digits &&
         tag.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

EDL_INLINE void sync_directory(std::string const& directory) {
  int const fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw error(fmt::format("cannot open directory {}: {}", directory, detail::reason(errno)));
  int const code = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // EINVAL: a file system that has nothing to force.
  if (code != 0 && code != EINVAL)
    throw error(fmt::format("cannot force directory {} to the disk: {}", directory, detail::reason(code)));
}

EDL_INLINE input_file::input_file(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // what is a pipe must not block
  if (fd_ < 0) throw error(fmt::format("cannot open {}: {}", path_, detail::reason(errno)));
  struct stat facts {};
  int const code = ::fstat(fd_, &facts) == 0 ? 0 : errno;
  if (code != 0 || !S_ISREG(facts.st_mode)) {
    ::close(std::exchange(fd_, -1));
    throw error(
        fmt::format("cannot read {}: {}", path_, code ? detail::reason(code) : "it is no regular file"));
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
      throw error(fmt::format("cannot read {} at byte {}: {}", path_, offset, detail::reason(errno)));
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
    crc = detail::extend_crc32(crc, part);
    at += part.size();
  }
  return crc;
}

}  // namespace edl::wire
