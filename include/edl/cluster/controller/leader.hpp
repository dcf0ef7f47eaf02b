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

/// Stands for election on its own thread until destroyed, then releases the lease. Thread safety: safe.
class leader {
 public:
  /// `changed`: called on its thread when it gains or loses the lead. `times`: those of the election `e`.
  leader(kubernetes::access via, election e, std::string path, std::string name, election::options times,
         std::function<void(bool leads)> changed, logger log);
  leader(leader const&) = delete;
  ~leader();

  /// Whether this process may act now.
  bool leads() const;
  /// Time since its thread last completed a turn.
  std::chrono::steady_clock::duration silent() const;
  /// Releases the lease. To be called once the threads that act have ended.
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
