// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "edl/base/bucket/place.hpp"
#include "edl/core/log.hpp"

namespace edl::train {

/// The lines of a job's history: text with a step each, which a separate thread appends to a file. A line is
/// one write, so a killed process leaves complete lines; a torn one, e.g. on a full disk, is undone or cut
/// off at the next start. A write error is logged once, and the line is kept and retried with later ones. It
/// does not fail the job. A line is dropped if its step is not above that of the last line of its kind.
/// Nothing is synced to disk. An object in a bucket is replaced as a whole, by all lines that have come
/// meanwhile, unless another process has replaced it. Thread safety: safe.
class history_file {
 public:
  enum class kind : std::uint8_t { training, evaluation, values, pictures };
  static constexpr std::size_t kinds = 4;

  /// `path` empty: nothing is written. `like`: a place with the options for a path in a bucket.
  history_file(std::string path, logger log, bucket::place const& like = {});
  history_file(history_file const&) = delete;
  history_file& operator=(history_file const&) = delete;

  /// Writes the rest, or logs how much is missing.
  ~history_file();

  /// Call before any line if the job resumes from this step: drops lines of later steps, and logs that.
  void go_on_from(std::uint64_t step);

  /// `line`: including its line end.
  void append(kind of, std::uint64_t step, std::string line);

  /// Waits until all earlier lines have been written, or attempted.
  void flush();

  static constexpr std::size_t most_waiting = 10'000;  ///< lines; further ones are dropped, and counted

 private:
  struct work {
    bool drops_later = false;  // or else a line
    kind series = kind::training;
    std::uint64_t step = 0;
    std::string line;
  };

  void put(work w);
  void run();
  void perform(work const& w);  // throws error
  void drop_after(std::uint64_t step);
  void write(work const& w);
  void save();

  std::string path_, name_;
  bucket::place place_;  // where the file is
  logger log_;
  std::mutex mutex_;
  std::condition_variable work_added_, tried_for_;
  std::deque<work> waiting_;
  std::uint64_t added_ = 0, tried_ = 0, lost_ = 0;
  bool over_ = false;
  int fd_ = -1;                 // these are the thread's
  std::uint64_t last_[4] = {};  // steps, by kind
  bool any_[4] = {}, warned_ = false;
  std::string text_, tag_;     // of an object
  std::size_t saved_ = 0;      // bytes of it that were there
  std::uint64_t unsaved_ = 0;  // changes to it
  std::thread thread_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/history_file.ipp"
#endif
