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

/// What a job ends with is written again where its storage fails, until a time is over. This counts the tries
/// of one such thing, in every process that writes one. Thread safety: unsafe.
class final_retries {
 public:
  struct limits {
    std::chrono::milliseconds timeout{10'000};  ///< since the first try
    std::chrono::milliseconds pause{1'000};     ///< between two tries
  };

  /// `name`: of what is written, as "the model".
  final_retries(std::string name, limits const& l, logger log, time_point now)
      : name_(std::move(name)), limits_(l), log_(std::move(log)), since_(now) {}

  /// It could not be written: whether it is to be tried again, after `pause`. The first failure is told.
  bool go_on(std::string const& failed, time_point now) {
    if (now - since_ >= limits_.timeout) return false;
    if (!std::exchange(announced_, true))
      log_.warning(fmt::format("{} cannot be written yet, it is tried again: {}", name_, failed));
    return true;
  }

  /// The time begins anew.
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
