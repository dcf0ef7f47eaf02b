// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "edl/base/bucket/store.hpp"
#include "edl/core/log.hpp"

namespace edl::bucket {

struct cache_options {
  std::string directory;                       ///< empty: `$XDG_CACHE_HOME/edl`, or `$HOME/.cache/edl`
  std::uint64_t most_bytes = 100ull << 30;     ///< of all copies together
  int connections = 8;                         ///< at a time
  std::uint64_t range = 8 << 20;               ///< bytes of one request
  std::chrono::milliseconds progress{10'000};  ///< between two log lines about a copy's progress
  store_options store = {};
  logger log = logger();
};

/// A local copy of objects, which is not removed during this object's lifetime.
class local_copy {
 public:
  local_copy(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  local_copy(local_copy&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
  local_copy& operator=(local_copy&&) = delete;
  ~local_copy();

  std::string const& path() const { return path_; }  ///< a file, a directory, or a pattern of files

  /// Removes a damaged copy of a "folder". False: another process uses it.
  bool remove();

 private:
  std::string path_;
  int lock_;
};

/// Whether a path names objects: `s3://…`.
bool names_objects(std::string_view path);

/// A path without '/' at its end. Those of `s3://` stay, so that a missing bucket is an error.
std::string without_slashes(std::string path);

/// Bucket and key of `s3://BUCKET/KEY`.
std::pair<std::string, std::string> parts_of(std::string const& url);

/// `cache_options::directory`, or the default. Throws error if there is none.
std::string cache_directory(cache_options const& o);

/// Copies the objects of `url` into the cache, unless they are there: `s3://BUCKET/KEY` an object, or all
/// below the "folder" KEY/; `s3://BUCKET/PREFIX*.csv` those that match. A copy is named by its bucket and a
/// hash of all keys, sizes and ETags, so changed objects give a new copy. Processes of one machine share it:
/// one copies, and the others wait. A process killed while copying leaves its objects for the next one.
/// Objects not encrypted with a user's key are compared with their ETags if these are MD5 sums. The least
/// recently used copies are removed to make room. Throws error, and storage_error if there is no room.
local_copy copy_of(std::string const& url, cache_options const& o);

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/cache.ipp"
#endif
