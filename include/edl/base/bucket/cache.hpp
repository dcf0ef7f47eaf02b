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
  std::uint64_t range = 8 << 20;               ///< bytes that one request asks for
  std::chrono::milliseconds progress{10'000};  ///< between two lines that tell how far a copy is
  store_options store = {};
  logger log = logger();
};

/// A local copy of objects, which is not removed while this is there.
class local_copy {
 public:
  local_copy(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  local_copy(local_copy&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}
  local_copy& operator=(local_copy&&) = delete;
  ~local_copy();

  std::string const& path() const { return path_; }  ///< a file, a directory, or a pattern of files

 private:
  std::string path_;
  int lock_;
};

/// Whether a path names objects: `s3://…`.
bool names_objects(std::string_view path);

/// Copies what `url` names into the cache, unless it is there: `s3://BUCKET/KEY` an object, or all below the
/// "folder" KEY/; `s3://BUCKET/PREFIX*.csv` those that match. A copy has the name of its bucket and a number
/// made of all keys, sizes and ETags, so another content is another copy. Processes of one machine share it:
/// one copies, and the others wait. One that was killed amid it leaves what it has for the next. Objects that
/// are not encrypted by a key of the user's are compared with their ETags, where these are MD5 sums. What was
/// not used for longest is removed to make room. Throws error, also where the copy would be larger than the
/// cache.
local_copy copy_of(std::string const& url, cache_options const& o);

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/cache.ipp"
#endif
