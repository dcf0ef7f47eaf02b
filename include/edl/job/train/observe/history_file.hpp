// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "edl/base/bucket/place.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/log.hpp"

namespace edl::train {

/// How lines are written to a bucket.
struct history_pace {
  std::uint64_t bytes_per_second = 100'000;  ///< on average, of an object that is replaced
  /// Not empty: the lines go to new objects `PATH.000000`, `PATH.000001` and so on, whose names sort in
  /// this order. Each begins with this text.
  std::string head = {};
  std::uint64_t part = 1 << 20;    ///< bytes of lines that are not kept back for an object of their own
  std::chrono::seconds pause{30};  ///< between two objects with fewer bytes
  std::uint64_t most_unsaved = 64 << 20;  ///< bytes of lines for several objects; further ones are dropped
};

/// The lines of a job's history: text with a step each, which a separate thread appends to a file. A line is
/// one write, so a killed process leaves complete lines; a torn one, e.g. on a full disk, is undone or cut
/// off at the next start. A write error is logged once, and the line is kept and retried with later ones. It
/// does not fail the job. A line is dropped if its step is not above that of the last line of its kind.
/// Nothing is synced to disk.
///
/// An object in a bucket is replaced as a whole, by all lines that have come meanwhile, unless another
/// process has replaced it; the larger it is, the longer it waits for them. Or the lines go to several
/// objects, one after the other. Thread safety: safe.
class history_file {
 public:
  enum class kind : std::uint8_t { training, evaluation, values, pictures };
  static constexpr std::size_t kinds = 4;

  /// `path` empty: nothing is written. `like`: a place with the options for a path in a bucket.
  history_file(std::string path, logger log, bucket::place const& like = {}, history_pace how = {});
  history_file(history_file const&) = delete;
  history_file& operator=(history_file const&) = delete;

  /// Writes the rest, or logs how much is missing.
  ~history_file();

  /// Call before any line if the job resumes from this step: drops lines of later steps, and logs that. Of
  /// several objects (`history_pace::head`) it drops none: lines of earlier steps follow them.
  void go_on_from(std::uint64_t step);

  /// `line`: including its line end.
  void append(kind of, std::uint64_t step, std::string line);

  /// Waits until all earlier lines have been written, or attempted; none is kept back.
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
  void save_part();
  bool is_part() const;
  void try_to_save(bool now);

  std::string path_, name_;
  bucket::place place_;  // where the file is
  logger log_;
  history_pace pace_;
  std::mutex mutex_;
  std::condition_variable work_added_, tried_for_;
  std::deque<work> waiting_;
  std::uint64_t added_ = 0, tried_ = 0, lost_ = 0;
  bool over_ = false, at_once_ = false;
  int fd_ = -1;                 // these are the thread's
  std::uint64_t last_[4] = {};  // steps, by kind
  bool any_[4] = {}, warned_ = false;
  std::string text_, tag_;     // of an object
  std::size_t saved_ = 0;      // bytes of it that were there
  std::uint64_t unsaved_ = 0;  // changes to it
  std::uint64_t parts_ = 0;    // objects that are written
  std::uint64_t dropped_ = 0;  // lines
  time_point due_{};           // for the next object
  std::thread thread_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/history_file.ipp"
#endif
