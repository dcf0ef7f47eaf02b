// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "edl/job/train/observe/history_file.hpp"

namespace edl::train {

/// Limits of a `job_feed`.
struct feed_bounds {
  std::size_t lines = 4096;      ///< of each kind; beyond that every second one is dropped
  std::size_t events = 2000;     ///< beyond that the oldest quarter is dropped
  std::size_t piece = 64 << 10;  ///< bytes that a reader gets at a time, plus one entry
};

/// The data of a job's page: its current state, the lines of its history, and its events. All of it is JSON,
/// kept in memory up to limits. Readers follow it as server-sent events, each from its own place; nothing is
/// queued for them. Thread safety: safe.
class job_feed {
 public:
  /// A reader's place; by default the beginning.
  struct place {
    std::uint64_t entry = 0, job = 0, removals = 0;
    bool begun = false, ended = false;
  };

  /// `run`: distinguishes this feed's places from another's; letters and digits. `changed`: called after each
  /// change, on the thread that made it.
  explicit job_feed(std::string run, std::function<void()> changed = {}, feed_bounds b = {});

  /// Sets the job's state, a one-line JSON object.
  void show(std::string job);

  /// Adds a line of `history.jsonl`, with or without its line end.
  void add_line(history_file::kind of, std::uint64_t step, std::string_view line);

  /// Drops lines of later steps.
  void drop_lines_after(std::uint64_t step);

  /// Adds an event, a one-line JSON object.
  void add_event(std::string event);

  /// Declares the end.
  void end();

  std::string job() const;      ///< an object; empty before the first `show`
  std::string history() const;  ///< an array of lines
  std::string events() const;   ///< an array

  /// The place of a reader that has last seen this id; the beginning if that is no longer available.
  place after(std::string_view last_event_id) const;

  /// News for a reader as server-sent events: `reset` (discard all data), `job`, `line`, `event`, and `end`,
  /// which is the last. Empty: nothing.
  std::string news(place& at) const;

 private:
  struct entry {
    std::uint64_t number = 0, step = 0;
    history_file::kind series = history_file::kind::training;
    std::string text;
  };
  using entries = std::deque<entry>;

  void removed(std::uint64_t newest);
  void thin();
  std::string id(std::uint64_t number) const;
  static std::string array_of(entries const& all);

  std::string run_;
  std::function<void()> changed_;
  feed_bounds bounds_;
  mutable std::mutex mutex_;
  entries lines_, events_;
  std::string job_;
  std::uint64_t newest_ = 0, shown_ = 0;             // numbers of the newest entry, of `job_`
  std::uint64_t removals_ = 0, newest_removed_ = 0;  // readers before that one have missed something
  bool over_ = false;
};

/// Reads the history of a resumed job, the newest 64 MiB, into `to`; skips invalid lines. `like`: a place
/// with the options for a path in a bucket. Throws error if that cannot be read.
void read_lines(std::string const& path, job_feed& to, bucket::place const& like = {});

/// The same for a job that goes on without them: if that cannot be read, it logs why.
void read_earlier_lines(std::string const& path, job_feed& to, bucket::place const& like);

/// At most this many bytes from the end of an untrusted file. Empty for a link, a file that is not regular or
/// cannot be read; never blocks.
std::string end_of_file(std::string const& path, std::size_t most);

/// Whether lines of a history have this field.
bool is_history_field(std::string_view name);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/job_feed.ipp"
#endif
