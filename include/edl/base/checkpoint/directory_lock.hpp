// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "edl/base/bucket/place.hpp"
#include "edl/core/error.hpp"

namespace edl::checkpoint {

struct lock_options {
  bucket::place directory;  ///< exists
  std::string description;  ///< its name in errors, e.g. "--checkpoint_dir=checkpoints"
  std::string job;          ///< the holder's, for others' errors

  /// Both locks, or one of the two: a command that starts its master holds the first, that master the second.
  enum class part { whole, command, master } holder = part::whole;

  /// Of a master: what `directory_lock::name` of its command has returned. The text may be another job's by
  /// the time it reads it. Empty: only the locks and the epochs count.
  std::string command = {};

  std::chrono::milliseconds beat{2'000};      ///< interval of the holder's heartbeat
  std::chrono::milliseconds timeout{15'000};  ///< without a heartbeat for this long a holder counts as dead
  std::chrono::milliseconds look{50};  ///< interval of a waiter's checks; of a bucket ten times as long

  /// Called once with what it waits for, if it waits.
  std::function<void(std::string const&)> tell = {};

  /// Identifies the kernel whose locks are visible; empty: this system's id.
  std::string machine = {};
};

/// Another job has locked the directory; the message names it.
struct directory_taken : error {
  using error::error;
};

/// Locks a directory for one job. `.edl-lock` contains two locks:
/// - locks of the operating system (open file description locks), which are released when their holder ends,
///   for any reason. Within one kernel and one mount only they count;
/// - a text that names the holder, which rewrites it at every `beat`, for file systems whose locks other
///   machines do not see. A process that finds another machine's text watches it for `timeout`: if it
///   changes, the job lives; otherwise it takes the directory over.
///
/// A bucket has only the text. Each write of it requires that the object is still the holder's last one, so
/// of two processes that take the directory over one fails at once. A store that ignores that is refused.
///
/// A holder that was suspended for longer than `timeout` may have lost the directory to another machine;
/// `check` detects that. Thread safety: `check` and `lost` are safe on any thread.
class directory_lock {
 public:
  /// Throws directory_taken if another job has the directory, storage_error if it cannot be read.
  explicit directory_lock(lock_options options);
  ~directory_lock();
  directory_lock(directory_lock const&) = delete;
  directory_lock& operator=(directory_lock const&) = delete;

  /// Begins a history: claims an epoch above all that were claimed here, or that a checkpoint has. It is
  /// written to `.edl-epoch` and synced to disk. If it cannot be written yet, `check` retries, and throws
  /// until it succeeds. Another process that considers this job dead and takes the directory over claims a
  /// later epoch, so this job detects that. Throws storage_error if the directory cannot be read, and error
  /// if another job has it by now.
  std::uint64_t claim();

  /// Throws error, which names the new holder, if another job has the directory by now, or a later epoch was
  /// claimed. Call it immediately before any change in the directory. If the directory or the lock file was
  /// removed, locks them again, and logs that.
  void check() const;

  /// The reason, as of the last beat or check, or empty. Once lost, it stays lost.
  std::optional<std::string> lost() const;

  /// Names this holder for `lock_options::command`.
  std::string name() const;

  /// Whether it was lost to a job with the same name: to a successor, which continues it.
  bool superseded() const { return superseded_; }

 private:
  struct holder {
    std::string owner, job, host, since, machine;
    std::uint64_t process = 0, beat = 0;
  };
  enum class grip { held, taken, unsupported };

  grip seize(int which, int fd) const;
  void acquire();
  void watch_foreign(bool decides);
  std::string text() const;
  std::optional<holder> read(std::string* raw = nullptr, std::string* tag = nullptr) const;
  static std::optional<holder> read_text(std::string const& all, std::string* raw = nullptr);
  std::string bytes_of(int fd) const;
  void write(std::string const& content) const;
  [[noreturn]] void refuse(std::optional<holder> const& by) const;
  std::string describe(std::optional<holder> const& by) const;
  void keep();
  void hold_again(std::optional<holder>& taken_by) const;
  void check_epoch() const;
  bool has_epoch() const;
  void check_text() const;

  lock_options options_;
  int fd_ = -1;              // of a directory
  mutable std::string tag_;  // of the text in a bucket that this process has seen or written last
  holder self_;
  mutable std::mutex mutex_, text_mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::atomic<bool> unwritten_ = false;
  mutable std::atomic<bool> superseded_ = false;
  std::string found_;  // the owner in the text that was there before
  mutable std::optional<std::string> lost_;
  std::atomic<std::uint64_t> epoch_ = 0;  // that was claimed
  std::thread keeper_;
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/directory_lock.ipp"
#endif
