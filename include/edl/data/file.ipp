// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/data/file.hpp"

namespace edl::data::detail {

EDL_INLINE std::string reason(int error_number) { return std::generic_category().message(error_number); }

inline std::int64_t change_time(struct stat const& of) {
  return std::int64_t(of.st_mtim.tv_sec) * 1'000'000'000 + of.st_mtim.tv_nsec;
}

EDL_INLINE input_file::input_file(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would hang.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw error(fmt::format("{}: cannot be opened: {}", path_, reason(errno)));
  struct stat of {};
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
      throw data_error(fmt::format("{}: cannot be read at byte {}: {}", path_, offset, reason(errno)));
    if (n == 0)
      throw data_error(
          fmt::format("{}: ends at byte {} though it had {} bytes when it was opened; it was changed", path_,
                      offset, size_));
    at += n, offset += std::uint64_t(n), count -= std::size_t(n);
  }
}

EDL_INLINE void input_file::check_unchanged() const {
  struct stat of {};
  if (::fstat(descriptor_, &of) != 0)
    throw data_error(fmt::format("{}: cannot be read any more: {}", path_, reason(errno)));
  if (std::uint64_t(of.st_size) != size_)
    throw data_error(
        fmt::format("{}: has {} bytes but had {} when it was opened; start again on the new file", path_,
                    of.st_size, size_));
  if (change_time(of) != changed_)
    throw data_error(
        fmt::format("{}: was changed while it was being read; start again on the new file", path_));
}

EDL_INLINE output_file::output_file(std::string path) : path_(std::move(path)) {
  // Hidden, so that whoever lists the directory meanwhile does not take it for data; in the same directory,
  // so that the rename is atomic.
  auto const name = path_.find_last_of('/') + 1;
  partial_ = fmt::format("{}.{}.{}.partial", path_.substr(0, name), path_.substr(name), ::getpid());
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw error(fmt::format("{}: cannot be written: {}", path_, reason(errno)));
}

EDL_INLINE output_file::~output_file() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

EDL_INLINE void output_file::write(std::string_view bytes) {
  while (!bytes.empty()) {
    auto const n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw error(fmt::format("{}: cannot be written: {}", path_, reason(errno)));
    bytes.remove_prefix(std::size_t(n));
  }
}

EDL_INLINE void output_file::close() {
  // Some file systems tell only here that the disk is full.
  if (::fsync(descriptor_) != 0 && errno != EINVAL)
    throw error(fmt::format("{}: cannot be written: {}", path_, reason(errno)));
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    int const why = errno;
    ::unlink(partial_.c_str());
    throw error(fmt::format("{}: cannot be written: {}", path_, reason(why)));
  }
  if (::rename(partial_.c_str(), path_.c_str()) != 0) {
    int const why = errno;
    ::unlink(partial_.c_str());
    throw error(fmt::format("{}: cannot be put in its place: {}", path_, reason(why)));
  }
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
