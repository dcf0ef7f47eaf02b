// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data::detail {

EDL_INLINE std::string reason(int error_number) {
  std::string const why = std::generic_category().message(error_number);
  return error_number == EMFILE
             ? why + "; let this process have more of them (ulimit -n), or use larger files"
             : why;
}

inline std::int64_t change_time(struct stat const& of) {
  return std::int64_t(of.st_mtim.tv_sec) * 1'000'000'000 + of.st_mtim.tv_nsec;
}

EDL_INLINE input_file::input_file(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe without a writer would block.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw error(fmt::format("{}: cannot be opened: {}", path_, reason(errno)));
  struct stat of{};
  if (::fstat(descriptor_, &of) != 0 || !S_ISREG(of.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    throw error(fmt::format("{}: is not a regular file", path_));
  }
  size_ = std::uint64_t(of.st_size);
  changed_ = change_time(of);
}

EDL_INLINE input_file::input_file(input_file&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      changed_(other.changed_) {}

EDL_INLINE input_file& input_file::operator=(input_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(changed_, other.changed_);
  return *this;
}

EDL_INLINE input_file::~input_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

EDL_INLINE void input_file::read(std::uint64_t offset, void* into, std::size_t count) const {
  auto* at = static_cast<char*>(into);
  while (count > 0) {
    auto const n = ::pread(descriptor_, at, count, ::off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw unread_error(fmt::format("{}: cannot be read at byte {}: {}", path_, offset, reason(errno)));
    if (n == 0)
      throw changed_error(
          fmt::format("{}: ends at byte {} though it had {} bytes when it was opened; it was changed", path_,
                      offset, size_));
    at += n, offset += std::uint64_t(n), count -= std::size_t(n);
  }
}

EDL_INLINE void input_file::check_unchanged() const {
  struct stat of{};
  if (::fstat(descriptor_, &of) != 0)
    throw unread_error(fmt::format("{}: can no longer be read: {}", path_, reason(errno)));
  if (std::uint64_t(of.st_size) != size_)
    throw changed_error(
        fmt::format("{}: has {} bytes but had {} when it was opened; start again on the new file", path_,
                    of.st_size, size_));
  if (change_time(of) != changed_)
    throw changed_error(
        fmt::format("{}: was changed while it was being read; start again on the new file", path_));
}

EDL_INLINE void content_digest::add(std::string_view bytes) {
  low_ = crc32(bytes, low_);
  high_ = crc32c(bytes, high_);
}

EDL_INLINE std::uint64_t content_digest::value() const {
  std::uint64_t const all = std::uint64_t{high_} << 32 | low_;
  return all == 0 ? 1 : all;
}

EDL_INLINE std::uint64_t digest_of(input_file const& file) {
  constexpr std::uint64_t block = 64 << 10, blocks = 1024;
  content_digest sum;
  sum.add(file.size());
  std::string bytes(block, '\0');
  auto const add = [&](std::uint64_t at) {
    auto const n = std::size_t(std::min(block, file.size() - at));
    file.read(at, bytes.data(), n);
    sum.add(std::string_view(bytes).substr(0, n));
  };
  if (file.size() <= block * blocks) {
    for (std::uint64_t at = 0; at < file.size(); at += block) add(at);
  } else {
    for (std::uint64_t i = 0; i < blocks; ++i) add((file.size() - block) / (blocks - 1) * i);
    add(file.size() - block);
  }
  return sum.value();
}

EDL_INLINE std::string read_all(std::string const& path, std::uint64_t limit) {
  input_file const file{path};
  if (file.size() > limit)
    throw data_error(
        fmt::format("{}: has {} bytes, at most {} are read into memory", path, file.size(), limit));
  std::string all(std::size_t(file.size()), '\0');
  file.read(0, all.data(), all.size());
  return all;
}

}  // namespace edl::data::detail
