// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "edl/core/clock.hpp"

namespace edl::controller {

/// What is to be looked at, and when: each key once at a time, however often it is added. A key that fails
/// comes again after pauses that double. One that was slow shares a few places with others of its kind, so
/// that the rest goes on beside it. Without clock and threads. Thread safety: distinct objects: safe. Shared
/// objects: unsafe.
class work_queue {
 public:
  struct options {
    std::chrono::milliseconds first_pause{200}, longest_pause{60'000};
    std::chrono::milliseconds slow{1'000};  ///< who took longer the last time, or failed, is slow
    std::size_t slow_at_once = 4;           ///< places for slow ones
  };
  work_queue() : work_queue(options{}) {}
  explicit work_queue(options o) : options_(o) {}

  /// To be looked at at `at`, or earlier where that was said before. One that fails waits for its pause
  /// nevertheless, unless it is `urgent`. One that is being looked at comes again after it.
  void add(std::string const& key, time_point at, bool urgent = false);

  /// The next key that is due, which counts as being looked at until `done`.
  std::optional<std::string> take(time_point now);

  void done(std::string const& key, time_point now, duration took, bool failed);

  /// Forgets a key that nobody is looking at; one that is being looked at, after that.
  void remove(std::string const& key);

  /// When to call `take` again, unless something is added or done before; nothing: then only.
  std::optional<time_point> next() const;

  std::size_t waiting() const { return due_.size(); }
  std::size_t working() const { return working_; }

 private:
  struct entry {
    std::optional<time_point> at{};        ///< is in `due_`
    std::optional<time_point> readd_at{};  ///< to be added when it is done
    time_point not_before{};               ///< the pause after a failure
    int failures = 0;
    bool working = false, slow = false, removed = false;
  };
  void put(std::string const& key, entry& e, time_point at);
  void check() const;

  options options_;
  std::map<std::string, entry> entries_;
  std::set<std::pair<time_point, std::string>> due_;
  std::size_t working_ = 0, slow_working_ = 0;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/work_queue.ipp"
#endif
