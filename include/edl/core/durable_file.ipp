// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/storage_error.hpp"

namespace edl {
namespace detail {

inline constexpr std::string_view temporary_mark = ".tmp-";
inline constexpr std::size_t temporary_digits = 16, durable_chunk = std::size_t{1} << 20;
inline constexpr std::time_t dead_after = 24 * 60 * 60;  // seconds, where there are no locks

EDL_INLINE std::string file_reason(int code) {
  std::string text = std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT) text += "; make room there or choose another directory";
  if (code == EFBIG) text += "; raise ulimit -f, or choose another directory";
  return text;
}

EDL_INLINE std::string temporary_of(std::string const& path) {
  std::random_device device;
  std::uint64_t const tag = std::uint64_t{device()} << 32 | device();
  auto const name = path.find_last_of('/') + 1;  // 0 without a directory
  return fmt::format("{}.{}{}{:016x}", path.substr(0, name), path.substr(name), temporary_mark, tag);
}

EDL_INLINE std::string directory_of(std::string const& path) {
  auto const slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Locks a temporary that was just created. False: another process took it for dead and has removed it.
EDL_INLINE bool claim_temporary(int fd) {
  while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
  }
  struct stat facts{};
  return ::fstat(fd, &facts) != 0 || facts.st_nlink > 0;
}

EDL_INLINE bool is_dead(std::string const& path) {
  // On some network file systems a write lock needs a file that is open for writing.
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat facts{};
  bool dead = false;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0)
    dead = true;
  else if (errno != EWOULDBLOCK && ::fstat(fd, &facts) == 0)
    dead = std::time(nullptr) - facts.st_mtim.tv_sec > dead_after;
  ::close(fd);
  return dead;
}

}  // namespace detail

EDL_INLINE durable_file::durable_file(std::string path) : path_(std::move(path)) {
  struct stat there{};
  if (::stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
    throw storage_error(EEXIST, fmt::format("cannot replace {}: it is not a regular file", path_));
  while (fd_ < 0) {
    temporary_ = detail::temporary_of(path_);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0)
      throw storage_error(errno, fmt::format("cannot create {}: {}", path_, detail::file_reason(errno)));
    if (!detail::claim_temporary(fd_)) ::close(std::exchange(fd_, -1));
  }
}

EDL_INLINE durable_file::~durable_file() { discard(); }

EDL_INLINE void durable_file::discard() noexcept {
  if (fd_ < 0) return;
  // The order matters: the lock ends with the descriptor, so it protects the name until the name is gone.
  ::unlink(temporary_.c_str());
  ::close(std::exchange(fd_, -1));
}

EDL_INLINE void durable_file::write(bytes data) {
  if (fd_ < 0) throw error(fmt::format("cannot write {}: it is closed", path_));
  while (!data.empty()) {
    bytes const chunk = data.first(std::min(data.size(), detail::durable_chunk));
    auto const n = ::write(fd_, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int const code = n < 0 ? errno : EIO;
      discard();
      throw storage_error(
          code, fmt::format("cannot write {} at byte {}: {}", path_, size_, detail::file_reason(code)));
    }
    crc32_ = std::uint32_t(crc32_z(crc32_, reinterpret_cast<Bytef const*>(chunk.data()), std::size_t(n)));
    size_ += std::uint64_t(n);
    data = data.subspan(std::size_t(n));
  }
}

EDL_INLINE void durable_file::overwrite(std::uint64_t at, std::string_view text) {
  invariant(fd_ >= 0 && at + text.size() <= size_, "only written bytes of an open file are overwritten");
  while (!text.empty()) {
    auto const n = ::pwrite(fd_, text.data(), text.size(), off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int const code = n < 0 ? errno : ENOSPC;
      discard();
      throw storage_error(
          code, fmt::format("cannot write {} at byte {}: {}", path_, at, detail::file_reason(code)));
    }
    at += std::uint64_t(n);
    text.remove_prefix(std::size_t(n));
  }
}

EDL_INLINE void durable_file::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

EDL_INLINE void durable_file::rename(std::string path) {
  invariant(fd_ >= 0, "a file has its name before it is committed");
  path_ = std::move(path);
}

EDL_INLINE void durable_file::commit(forced what) {
  if (fd_ < 0) throw error(fmt::format("cannot write {}: it is closed", path_));
  int code = what == forced::nothing || ::fsync(fd_) == 0 || errno == EINVAL ? 0 : errno;
  // Some network file systems report a full disk only on close. We close a duplicate, because the file must
  // stay locked until it has its name.
  int const copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) != 0 && code == 0) code = errno;
  if (code == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) code = errno;
  if (code != 0) {
    discard();
    throw storage_error(code, fmt::format("cannot complete {}: {}", path_, detail::file_reason(code)));
  }
  ::close(std::exchange(fd_, -1));
  if (what == forced::name) sync_directory(detail::directory_of(path_));
}

EDL_INLINE void replace_file(std::string const& path, std::string_view text, forced what) {
  durable_file file(path);
  file.write(text);
  file.commit(what);
}

EDL_INLINE durable_directory::durable_directory(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  std::error_code failed;
  std::filesystem::create_directories(detail::directory_of(path_), failed);
  if (failed)
    throw storage_error(failed.value(), fmt::format("{}: cannot be created: {}", path_, failed.message()));
  while (fd_ < 0) {
    temporary_ = detail::temporary_of(path_);
    if (::mkdir(temporary_.c_str(), 0777) != 0)
      throw storage_error(errno, fmt::format("{}: cannot be created: {}", path_, detail::file_reason(errno)));
    fd_ = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0 && errno == ENOENT) continue;
    if (fd_ < 0)
      throw storage_error(errno, fmt::format("{}: cannot be opened: {}", path_, detail::file_reason(errno)));
    if (!detail::claim_temporary(fd_)) ::close(std::exchange(fd_, -1));
  }
}

EDL_INLINE durable_directory::~durable_directory() {
  if (fd_ < 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
  ::close(fd_);
}

EDL_INLINE void durable_directory::commit() {
  if (fd_ < 0) throw error(fmt::format("{}: is already complete", path_));
  sync_directory(temporary_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)  // replaces an empty directory
    throw storage_error(errno,
                        fmt::format("cannot rename {} into place: {}", path_, detail::file_reason(errno)));
  ::close(std::exchange(fd_, -1));
  sync_directory(detail::directory_of(path_));
}

EDL_INLINE bool is_temporary(std::string_view name) {
  auto const mark = name.rfind(detail::temporary_mark);
  if (mark == std::string_view::npos) return false;
  auto const tag = name.substr(mark + detail::temporary_mark.size());
  return tag.size() == detail::temporary_digits &&
         tag.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

EDL_INLINE std::size_t remove_dead_temporaries(std::string const& directory, std::string_view of) noexcept
    try {
  std::error_code code;
  std::vector<std::string> found;
  std::string const begin = of.empty() ? "" : fmt::format(".{}{}", of, detail::temporary_mark);
  for (std::filesystem::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (std::string const name = it->path().filename().native();
        is_temporary(name) &&
        (of.empty() || (name.starts_with(begin) && name.size() == begin.size() + detail::temporary_digits)))
      found.push_back(it->path().native());
  std::size_t removed = 0;
  for (std::string const& path : found)
    if (detail::is_dead(path)) removed += std::filesystem::remove_all(path, code) > 0 && !code;
  return removed;
} catch (...) {
  return 0;
}

EDL_INLINE void sync_directory(std::string const& directory) {
  int const fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    throw storage_error(errno,
                        fmt::format("cannot open directory {}: {}", directory, detail::file_reason(errno)));
  int const code = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // EINVAL: the file system does not support syncing.
  if (code != 0 && code != EINVAL)
    throw storage_error(
        code, fmt::format("cannot sync directory {} to the disk: {}", directory, detail::file_reason(code)));
}

}  // namespace edl
