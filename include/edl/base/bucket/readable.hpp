// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "edl/base/bucket/cache.hpp"
#include "edl/compute/data/reader.hpp"

namespace edl::bucket {

/// A path as this process can read it: the given one or, of `s3://…`, that of a copy of the objects, which
/// stays during this object's lifetime. Thread safety: safe.
class readable {
 public:
  /// Copies objects into the cache, unless they are there. Throws as `copy_of` does.
  readable(std::string given, cache_options const& cache);

  std::string const& path() const { return path_; }

  /// A text with the names of the objects in place of those of their copies.
  std::string named(std::string text) const;

  /// Calls `f`, and gives its errors the names of the objects.
  template <class F>
  decltype(auto) use(F&& f) const {
    try {
      return std::forward<F>(f)();
    } catch (...) {
      rethrow();
    }
  }

 private:
  [[noreturn]] void rethrow() const;

  std::string path_;
  std::optional<local_copy> copy_;
  std::string directory_, objects_;  // where the copy is, and of what
};

/// An opener of records that reads objects of buckets, too: `s3://…`, `text:LENGTH:s3://…` and
/// `tokens:LENGTH:s3://…`. It asks `own` first. The sources keep their copies, and errors name the objects.
data::opener opener_of(cache_options cache, data::opener own = {});

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/readable.ipp"
#endif
