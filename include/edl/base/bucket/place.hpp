// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/store.hpp"

namespace edl::bucket {

/// A directory, or the objects of a bucket below `s3://BUCKET/PREFIX`, as the place of files that are written
/// whole and once. Names are those of files directly in it. Errors name the place.
///
/// Thread safety: safe, for different names.
class place {
 public:
  /// `path` need not exist. `o.directory`: where a file for a bucket is written before it is uploaded.
  explicit place(std::string path, cache_options o = {});
  ~place();
  place(place&&) noexcept;

  /// Throws error if nothing can be written there: creates a directory and tests it, or begins an upload to
  /// the bucket and removes it again.
  void check() const;

  /// Calls `how` with the path to which it writes the file `name`, as `durable_file` does: that in the
  /// directory, or of a temporary file, which then replaces the object.
  void write(std::string const& name, std::function<void(std::string const& path)> const& how) const;

  /// The names of the files, in any order. A directory that does not exist has none.
  std::vector<std::string> names() const;

  /// Removes a file, if it exists.
  void remove(std::string const& name) const;

 private:
  std::string path_, prefix_;
  cache_options options_;
  std::unique_ptr<store> store_;  // null: a directory
};

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/place.ipp"
#endif
