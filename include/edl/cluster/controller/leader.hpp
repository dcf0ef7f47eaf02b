// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "edl/cluster/controller/election.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/log.hpp"

namespace edl::controller {

/// Stands for election, on a thread of its own, until it is destroyed; then it gives the lease back.
/// Thread safety: safe.
class leader {
 public:
  /// `changed`: called on its thread when it begins or ceases to lead. `of` is asked with the election's own
  /// times.
  leader(kubernetes::access via, election e, std::string path, std::string name, election::options times,
         std::function<void(bool leads)> changed, logger log);
  leader(leader const&) = delete;
  ~leader();

  /// Whether it may act now.
  bool leads() const;
  /// How long its thread has not come round.
  std::chrono::steady_clock::duration silent() const;
  /// Whoever acts has ended: the lease may be given to others.
  void resign();

 private:
  void run();
  void turn();
  bool pause(std::chrono::milliseconds time);

  kubernetes::client client_;
  std::string path_, name_;
  election::options times_;
  std::function<void(bool)> changed_;
  logger log_;
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  election election_;  // under the mutex
  std::atomic<time_point> seen_;
  bool stopped_ = false, was_ = false;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/leader.ipp"
#endif
