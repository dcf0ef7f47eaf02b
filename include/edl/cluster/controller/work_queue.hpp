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

/// A queue of keys with due times. No key is in work twice at once, however often it is added. A failed key
/// is retried after pauses that double. Slow keys share a few places, so that they cannot block the others.
/// Uses no clock or threads. Thread safety: distinct objects: safe. Shared objects: unsafe.
class work_queue {
 public:
  struct options {
    std::chrono::milliseconds first_pause{200}, longest_pause{60'000};
    std::chrono::milliseconds slow{1'000};  ///< a key that took longer the last time, or failed, is slow
    std::size_t slow_at_once = 4;           ///< places for slow keys
  };
  work_queue() : work_queue(options{}) {}
  explicit work_queue(options o) : options_(o) {}

  /// Makes a key due at `at`, or earlier if it already is. A failed key still waits for the end of its pause
  /// unless `urgent`. A key in work becomes due again once it is done.
  void add(std::string const& key, time_point at, bool urgent = false);

  /// Takes the next key that is due, which is then in work until `done`.
  std::optional<std::string> take(time_point now);

  void done(std::string const& key, time_point now, duration took, bool failed);

  /// Forgets a key; one in work, once it is done.
  void remove(std::string const& key);

  /// When to call `take` again unless a key is added or done earlier; nothing: not before then.
  std::optional<time_point> next() const;

  std::size_t waiting() const { return due_.size(); }
  std::size_t working() const { return working_; }

 private:
  struct entry {
    std::optional<time_point> at{};        ///< its time in `due_`
    std::optional<time_point> readd_at{};  ///< becomes due then, once it is done
    time_point not_before{};               ///< end of the pause after a failure
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
