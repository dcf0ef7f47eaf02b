// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/span.hpp"

namespace edl {

/// How much of a new file survives a power failure. `nothing`: it may be lost or cut off. `content`: the file
/// is whole, either the new or the previous one. `name`: it is the new one.
enum class forced { nothing, content, name };

/// A file that exists either whole or not at all. It is written beside `path` under a temporary, hidden name,
/// `.NAME.tmp-<16 hex digits>`, which `commit` forces to the disk and renames. Without `commit` nothing is
/// left behind, except for a temporary after a crash (`remove_dead_temporaries`). A device or a pipe is not
/// replaced. Errors (edl::error) name the file, the byte and the reason. Thread safety: distinct objects:
/// safe, even on one path, where the last commit wins. Shared objects: unsafe.
class durable_file {
 public:
  explicit durable_file(std::string path);
  ~durable_file();
  durable_file(durable_file const&) = delete;
  durable_file& operator=(durable_file const&) = delete;

  void write(bytes data);
  void write(std::string_view text);

  /// Overwrites bytes that were written before; `crc32` does not reflect the change.
  void overwrite(std::uint64_t at, std::string_view text);

  /// Changes the name within the directory, for a caller who knows it only after everything is written.
  void rename(std::string path);

  /// Gives the written file the name `path`. Waits for the disk twice; for `content` once, for `nothing`
  /// never.
  void commit(forced what = forced::name);

  std::string const& path() const { return path_; }
  std::uint64_t size() const { return size_; }    ///< bytes written so far
  std::uint32_t crc32() const { return crc32_; }  ///< zlib's, of what was written so far

 private:
  void discard() noexcept;

  std::string path_, temporary_;
  std::uint64_t size_ = 0;
  std::uint32_t crc32_ = 0;
  int fd_ = -1;
};

/// Writes `text` as the file `path`, with the guarantees of `durable_file`.
void replace_file(std::string const& path, std::string_view text, forced what = forced::name);

/// A directory that exists either whole or not at all, in the same way. An empty directory may already exist
/// at `path`. Thread safety: as `durable_file`.
class durable_directory {
 public:
  explicit durable_directory(std::string path);
  ~durable_directory();
  durable_directory(durable_directory const&) = delete;
  durable_directory& operator=(durable_directory const&) = delete;

  std::string const& temporary() const { return temporary_; }  ///< where files are to be written
  void commit();

 private:
  std::string path_, temporary_;
  int fd_ = -1;
};

/// Whether this is the name of a temporary of the classes above.
bool is_temporary(std::string_view name);

/// Removes the temporaries in `directory` whose writers have ended, and returns how many it removed. A writer
/// holds a lock (flock) on its temporary. On a file system without locks, a temporary counts as dead when it
/// has not changed for a day. A directory that does not exist contains none. `of`: removes only the
/// temporaries of files of this name. Never throws: a leftover does no harm.
std::size_t remove_dead_temporaries(std::string const& directory, std::string_view of = {}) noexcept;

/// Forces a directory's entries to the disk.
void sync_directory(std::string const& directory);

namespace detail {

/// The message for an errno, with a remedy where there is one.
std::string file_reason(int code);

}  // namespace detail
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/durable_file.ipp"
#endif
