// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/core/durable_file.hpp"

namespace edl::bucket {

struct cache_options;
class store;
class local_copy;

/// A directory, or the objects of a bucket below `s3://BUCKET/PREFIX`, as the place of files that are written
/// whole. Names are those of files directly in it. Errors name the place.
///
/// A bucket has conditions instead of locks: a write may require what a `tag` says of the object that it
/// replaces. A directory has no tags, and its writers exclude each other by other means.
///
/// Thread safety: safe, for different names.
class place {
 public:
  /// `path` need not exist; empty: no place. `o.directory`: where a file for a bucket is written before it is
  /// uploaded, and where copies are.
  place(std::string path = {});  // NOLINT(google-explicit-constructor): most places are known by their paths
  place(char const* path) : place(std::string(path)) {}  // NOLINT(google-explicit-constructor)
  place(std::string path, cache_options const& o);

  std::string const& path() const { return path_; }  ///< in a bucket without '/' at its end
  bool empty() const { return path_.empty(); }
  bool in_bucket() const { return bool(store_); }

  /// Another place, with the same options; or a folder of this one.
  place at(std::string path) const;
  place below(std::string const& name) const { return at(path_ + "/" + name); }

  /// Throws error if nothing can be written there: creates a directory and tests it, or begins an upload to
  /// the bucket, of `name`, and removes it again.
  void check(std::string const& name = "edl") const;

  /// Throws error if the store of a bucket ignores conditions: it writes `name` twice.
  void check_conditions(std::string const& name) const;

  /// Creates a directory, if need be; a bucket needs none.
  void create() const;

  /// Calls `how` with the path to which it writes the file `name`, as `durable_file` does: that in the
  /// directory, or of a temporary file, which then replaces the object.
  void write(std::string const& name, std::function<void(std::string const& path)> const& how) const;

  /// Calls `how` with the path of a new directory, in which it writes files: this one, or a temporary one
  /// whose files then become objects here, one after the other; after an error they are removed. Throws error
  /// if objects are here already, or if none may be written.
  void fill(std::function<void(std::string const& directory)> const& how) const;

  struct text {
    std::string content;
    std::string tag;  ///< of the object; empty: of a file, or there is none
  };

  /// A file of at most `most` bytes. Nothing: there is none.
  std::optional<text> read(std::string const& name, std::uint64_t most) const;

  /// Replaces a file by a text, and returns its tag; calls `last` immediately before. In a bucket only if the
  /// object's tag is still `over`, or if there is none (empty); nothing: it is not. `much`: of a file.
  std::optional<std::string> replace(std::string const& name, std::string_view content,
                                     std::string const& over, std::function<void()> const& last = {},
                                     forced much = forced::name) const;

  /// The same, whatever is there.
  void put(std::string const& name, std::string_view content, forced much = forced::name) const;

  /// The names of files and folders, in any order. A directory that does not exist has none.
  std::vector<std::string> names() const;

  /// The bytes of a file. Throws error if it cannot be opened.
  std::uint64_t size(std::string const& name) const;

  /// Objects of a bucket below this place: names with '/', and tags. `skip` is called with one page of the
  /// list after the other, and returns a folder of whose objects no further ones are wanted ("a/b/"); empty:
  /// none are; nothing: all are. Throws error if there are more than `most`.
  using listed = std::vector<std::pair<std::string, std::string>>;
  listed objects(std::function<std::optional<std::string>(listed const& page)> const& skip = {},
                 std::size_t most = 1'000'000) const;

  /// A copy on this machine of all objects below this place of a bucket.
  local_copy copy() const;

  /// Gives a file of another place the same name here: by a hard link, or by a copy that the store makes.
  /// False: that is impossible; why a copy failed is logged.
  bool link(std::string const& from, std::string const& name) const;

  /// Logs a warning where those of this place go.
  void warn(std::string const& text) const;

  /// Removes a file, if it exists; or everything below this place.
  void remove(std::string const& name) const;
  void remove_all() const;

  /// Removes incomplete uploads to names that start with `begin` in this place of a bucket, whoever has begun
  /// them.
  void abandon_uploads(std::string const& begin) const;

 private:
  std::string path_, prefix_;
  std::shared_ptr<cache_options const> options_;
  std::shared_ptr<store const> store_;  // null: a directory
};

}  // namespace edl::bucket

#ifdef EDL_HEADER_ONLY
#include "edl/base/bucket/place.ipp"
#endif
