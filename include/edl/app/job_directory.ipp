// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/app/job_directory.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::string_view job_directory_prefix = "edl-run-";
inline constexpr std::size_t longest_base = 70;  // a Unix socket's path has 107 bytes

// These paths become part of a list of socket addresses: docs/protocol.md lists its separators.
inline bool stands_in_address(std::string const& path) {
  return path.starts_with('/') && std::ranges::all_of(path, [](unsigned char c) {
           return c > ' ' && c != 127 && c != '!' && c != ',';
         });
}

// Any other user who may write to a directory, or owns it, can rename entries; in a sticky directory only the
// owner can.
inline bool is_safe_base(std::string const& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode)) return false;
  bool const own = s.st_uid == ::geteuid(), shared = (s.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  bool const sticky = (s.st_mode & S_ISVTX) != 0;
  return (shared ? sticky && (own || s.st_uid == 0) : own) && ::access(path.c_str(), W_OK | X_OK) == 0;
}

// Candidate directories, the best first.
inline std::vector<std::string> job_directory_bases() {
  char const* const given = std::getenv("XDG_RUNTIME_DIR");
  std::error_code failed;
  std::string const temporary = std::filesystem::temp_directory_path(failed).string();
  std::vector<std::string> all;
  for (std::string const& base : {std::string(given ? given : ""), temporary})
    if (base.size() <= longest_base && stands_in_address(base) && is_safe_base(base)) all.push_back(base);
  all.push_back("/tmp");
  return all;
}

inline int locked(std::string const& directory, int make) {
  int const fd =
      ::open((directory + "/lock").c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | make, S_IRUSR | S_IWUSR);
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

// Removes files and sockets, without recursion: anything that a job never creates stays.
inline void remove_flat(std::string const& directory) {
  std::error_code failed;
  for (auto it = std::filesystem::directory_iterator(directory, failed);
       !failed && it != std::filesystem::directory_iterator(); it.increment(failed))
    ::unlink(it->path().c_str());
  ::rmdir(directory.c_str());
}

// Directories that this user created and that no other user can read.
inline std::vector<std::string> own_job_directories(std::string const& base) {
  std::vector<std::string> all;
  std::error_code failed;
  for (auto it = std::filesystem::directory_iterator(base, failed);
       !failed && it != std::filesystem::directory_iterator(); it.increment(failed)) {
    std::string const path = it->path().string();
    struct stat s{};
    if (it->path().filename().string().starts_with(job_directory_prefix) && ::lstat(path.c_str(), &s) == 0 &&
        S_ISDIR(s.st_mode) && s.st_uid == ::geteuid() && (s.st_mode & (S_IRWXG | S_IRWXO)) == 0)
      all.push_back(path);
  }
  return all;
}

// Removes directories of killed processes: no process holds their lock.
inline void remove_dead_directories(std::string const& base) {
  for (std::string const& path : own_job_directories(base)) {
    int const lock = locked(path, 0);
    if (lock < 0) continue;
    remove_flat(path);
    ::close(lock);
  }
}

}  // namespace detail

EDL_INLINE job_directory::job_directory() {
  std::string const base = detail::job_directory_bases().front();
  detail::remove_dead_directories(base);
  // Until it is locked, a new directory looks like that of a killed process, and another process may remove
  // it.
  for (int attempt = 0; attempt < 10; ++attempt) {
    path_ = fmt::format("{}/{}XXXXXX", base, detail::job_directory_prefix);
    if (!::mkdtemp(path_.data())) break;
    lock_ = detail::locked(path_, O_CREAT);
    struct stat s{};
    if (lock_ >= 0 && ::stat((path_ + "/lock").c_str(), &s) == 0) return;
    if (lock_ >= 0) ::close(std::exchange(lock_, -1));
  }
  throw error(
      fmt::format("cannot make a directory in {}: {}; set XDG_RUNTIME_DIR or TMPDIR to another directory",
                  base, std::strerror(errno)));
}

EDL_INLINE job_directory::~job_directory() {
  detail::remove_flat(path_);
  if (lock_ >= 0) ::close(lock_);
}

EDL_INLINE std::vector<std::string> running_job_directories() {
  std::vector<std::string> all;
  for (std::string const& base : detail::job_directory_bases())
    for (std::string& path : detail::own_job_directories(base)) {
      int const lock = detail::locked(path, 0);
      if (lock < 0) all.push_back(std::move(path));
      if (lock >= 0) ::close(lock);
    }
  return all;
}

}  // namespace edl::app
