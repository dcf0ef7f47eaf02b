// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/span.hpp"

namespace edl {

/// What a file is to outlive, beyond the end of its writer: nothing, so that it may be lost or cut off when
/// the power fails; that it is then whole, the new one or the one before; or that it is then the new one.
enum class forced { nothing, content, name };

/// A file that exists whole or not at all. It is written beside `path` under a temporary, hidden name,
/// `.NAME.tmp-<16 hex digits>`, which `commit` forces to the disk and renames. Without `commit` nothing stays
/// behind, but for a temporary after a crash (`remove_dead_temporaries`). A device or a pipe is not replaced.
/// Errors (edl::error) name the file,
/// the byte and the reason. Thread safety: distinct objects: safe, even on one path, the last commit wins.
/// Shared objects: unsafe.
class durable_file {
 public:
  explicit durable_file(std::string path);
  ~durable_file();
  durable_file(durable_file const&) = delete;
  durable_file& operator=(durable_file const&) = delete;

  void write(bytes data);
  void write(std::string_view text);

  /// Puts other bytes in the place of some that were written; `crc32` does not hear of it.
  void overwrite(std::uint64_t at, std::string_view text);

  /// Another name in the same directory, for who knows it only when all is written.
  void rename(std::string path);

  /// Makes what was written be the file `path`. Waits for the disk twice, with less than `name` once or
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

/// Makes `text` be the file `path`, as `durable_file` does.
void replace_file(std::string const& path, std::string_view text, forced what = forced::name);

/// A directory that exists whole or not at all, in the same way. `path` may be an empty directory before.
/// Thread safety: as `durable_file`.
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

/// Whether a name is that of a temporary of the classes above.
bool is_temporary(std::string_view name);

/// Removes the temporaries in `directory` whose writers have ended, and returns how many these were. A writer
/// holds a lock (flock) on its temporary. Where a file system has no locks, a temporary that was not changed
/// for a day counts as dead. A directory that does not exist has none. `of`: those of files of this name
/// alone. Never throws: litter does no harm.
std::size_t remove_dead_temporaries(std::string const& directory, std::string_view of = {}) noexcept;

/// Forces a directory's entries to the disk.
void sync_directory(std::string const& directory);

namespace detail {

/// What errno says, with the way out where there is one.
std::string file_reason(int code);

}  // namespace detail
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/durable_file.ipp"
#endif
