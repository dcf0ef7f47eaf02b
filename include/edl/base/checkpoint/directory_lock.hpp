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

#include "edl/core/error.hpp"

namespace edl::checkpoint {

struct lock_options {
  std::string directory;    ///< exists
  std::string description;  ///< how errors call it, as "--checkpoint_dir=checkpoints"
  std::string job;          ///< the holder's, for others' errors

  /// Both, or one of two locks: a command that has its master started holds the first, that master the
  /// second.
  enum class part { whole, command, master } holder = part::whole;

  std::chrono::milliseconds beat{2'000};      ///< the holder shows at this interval that it lives
  std::chrono::milliseconds timeout{15'000};  ///< who shows nothing for so long counts as dead
  std::chrono::milliseconds look{50};         ///< a waiter looks at this interval

  /// Told once what is waited for, if anything is.
  std::function<void(std::string const&)> tell = {};

  /// What tells the kernel whose locks are seen from all others; empty: what this system says.
  std::string machine = {};
};

/// Another job has the directory; the message names it.
struct directory_taken : error {
  using error::error;
};

/// Keeps a directory for one job. Two locks stand in `.edl-lock`:
/// - locks of the operating system (open file description locks), which end with their holder at once,
///   however it ends. Within one kernel and one mount they decide alone;
/// - a text that names the holder and that it rewrites at every `beat`, for file systems whose locks other
///   machines do not see. Who finds the text of another machine watches it for `timeout`: what changes
///   belongs to a job that lives, anything else is taken over.
///
/// A holder that was suspended for longer than `timeout` may have lost the directory to another machine;
/// `check` tells. Thread safety: `check` and `lost` are safe on any thread.
class directory_lock {
 public:
  /// Throws directory_taken when another job has the directory, storage_error when it cannot be read.
  explicit directory_lock(lock_options options);
  ~directory_lock();
  directory_lock(directory_lock const&) = delete;
  directory_lock& operator=(directory_lock const&) = delete;

  /// Begins a history: an epoch above all that were claimed here, or that a checkpoint is of. It stands in
  /// `.edl-epoch`, forced to the disk. Where it cannot be written yet, `check` tries again, and throws until
  /// it is. Who waits for the directory elsewhere, and takes it because it takes this job for dead, claims a
  /// later one: so this one learns of it. Throws storage_error when the directory cannot be read, and error
  /// when it is another job's by now.
  std::uint64_t claim();

  /// Throws error, which names the new holder, when the directory is another job's by now, or a later epoch
  /// was claimed. To be called right before anything in it is changed. Where the directory or the file of the
  /// locks was removed, takes them again, and tells it.
  void check() const;

  /// The same, as seen at the last beat or check: the reason, or nothing. Once lost, it stays so.
  std::optional<std::string> lost() const;

  /// Whether it was lost to a job of the same name: to a successor, which goes on with it.
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
  std::optional<holder> read(std::string* raw = nullptr) const { return read_from(fd_, raw); }
  std::optional<holder> read_from(int fd, std::string* raw = nullptr) const;
  void write(std::string const& content) const;
  [[noreturn]] void refuse(std::optional<holder> const& by) const;
  std::string describe(std::optional<holder> const& by) const;
  void keep();
  void hold_again(std::optional<holder>& taken_by) const;
  void check_epoch() const;
  void check_text() const;

  lock_options options_;
  int fd_ = -1;
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
