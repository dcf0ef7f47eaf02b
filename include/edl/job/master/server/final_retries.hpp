// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "edl/core/log.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

/// Retries the writing of a job's final result for a limited time if the storage fails. One object per
/// result, in each process that writes one. Thread safety: unsafe.
class final_retries {
 public:
  struct limits {
    std::chrono::milliseconds timeout{10'000};  ///< since the first attempt
    std::chrono::milliseconds pause{1'000};     ///< between two attempts
  };

  /// `name`: of the result, e.g. "the model".
  final_retries(std::string name, limits const& l, logger log, time_point now)
      : name_(std::move(name)), limits_(l), log_(std::move(log)), since_(now) {}

  /// Call after a failure: returns whether to retry after `pause`. Logs the first failure.
  bool go_on(std::string const& failed, time_point now) {
    if (now - since_ >= limits_.timeout) return false;
    if (!std::exchange(announced_, true))
      log_.warning(fmt::format("{} cannot be written yet, retrying: {}", name_, failed));
    return true;
  }

  /// Restarts the time.
  void restart(time_point now) { since_ = now; }

  std::chrono::milliseconds pause() const { return std::min(limits_.pause, limits_.timeout); }

 private:
  std::string name_;
  limits limits_;
  logger log_;
  time_point since_;
  bool announced_ = false;
};

}  // namespace edl::master
