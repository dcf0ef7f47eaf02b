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

/// How much a `job_feed` keeps.
struct feed_bounds {
  std::size_t lines = 4096;      ///< of more of them every second one goes, of each kind
  std::size_t events = 2000;     ///< of more of them the oldest quarter goes
  std::size_t piece = 64 << 10;  ///< bytes that a reader gets at a time, and one entry more
};

/// What a page shows of a job: how it does now, the lines of its history, and what happened to it. All of it
/// is JSON, kept in memory up to some bounds. Readers follow it as server-sent events, each by a place of its
/// own; nothing is queued for them. Thread safety: safe.
class job_feed {
 public:
  /// Where a reader is. By default at the beginning.
  struct place {
    std::uint64_t entry = 0, job = 0, removals = 0;
    bool begun = false, ended = false;
  };

  /// `run`: what tells this feed's places from those of another; letters and digits. `changed`: called after
  /// each change, on the thread that made it.
  explicit job_feed(std::string run, std::function<void()> changed = {}, feed_bounds b = {});

  /// How the job does, an object of JSON in one line.
  void show(std::string job);

  /// A line of `history.jsonl`, with or without its end.
  void add_line(history_file::kind of, std::uint64_t step, std::string_view line);

  /// Lines of later steps are void.
  void drop_lines_after(std::uint64_t step);

  /// Something has happened, an object of JSON in one line.
  void add_event(std::string event);

  /// Nothing follows.
  void end();

  std::string job() const;      ///< an object; empty before the first `show`
  std::string history() const;  ///< an array of lines
  std::string events() const;   ///< an array

  /// Where a reader goes on that has last seen this id; at the beginning, where that is not to be had.
  place after(std::string_view last_event_id) const;

  /// What is new to a reader as server-sent events: `reset` (all that it knows is void), `job`, `line`,
  /// `event`, and `end`, after which nothing comes. Empty: nothing.
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
  std::uint64_t removals_ = 0, newest_removed_ = 0;  // who is behind that one has missed something
  bool over_ = false;
};

/// The lines of a history that a job goes on with, the newest 64 MiB, into `to`; what is no line of one is
/// left out.
void read_lines(std::string const& path, job_feed& to);

/// At most so many bytes of the end of a file that others may have put there: what is no regular file, or a
/// link, or cannot be read, is empty, and is not waited for.
std::string end_of_file(std::string const& path, std::size_t most);

/// Whether lines of a history have such a field.
bool is_history_field(std::string_view name);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/job_feed.ipp"
#endif
