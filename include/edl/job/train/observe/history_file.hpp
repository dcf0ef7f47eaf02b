// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "edl/core/log.hpp"

namespace edl::train {

/// The lines of a job's history: text with a step each, appended to a file on a thread of its own. A line is
/// one write, so that the end of the process leaves whole ones; a torn one, as of a full disk, is taken back
/// or cut off at the next start. What cannot be written is said once, kept, and tried again with what
/// follows. It is no failure of the job. Of a kind, a line whose step is not above the last one's is left
/// out. Nothing is forced to the disk. Thread safety: safe.
class history_file {
 public:
  enum class kind : std::uint8_t { training, evaluation, values, pictures };
  static constexpr std::size_t kinds = 4;

  /// `path` empty: nothing is written.
  history_file(std::string path, logger log);
  history_file(history_file const&) = delete;
  history_file& operator=(history_file const&) = delete;

  /// Writes what is left, or says how much is missing.
  ~history_file();

  /// The job goes on from this step: drops the lines of later ones, and says so. To come before any line.
  void go_on_from(std::uint64_t step);

  /// `line`: with its end.
  void append(kind of, std::uint64_t step, std::string line);

  /// Waits until all that was given before has been written, or tried.
  void flush();

  static constexpr std::size_t most_waiting = 10'000;  ///< lines; more of them are lost, and counted

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

  std::string path_;
  logger log_;
  std::mutex mutex_;
  std::condition_variable work_added_, tried_for_;
  std::deque<work> waiting_;
  std::uint64_t added_ = 0, tried_ = 0, lost_ = 0;
  bool over_ = false;
  int fd_ = -1;                 // these are the thread's
  std::uint64_t last_[4] = {};  // steps, by kind
  bool any_[4] = {}, warned_ = false;
  std::thread thread_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/history_file.ipp"
#endif
