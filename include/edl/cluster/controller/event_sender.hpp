// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "edl/cluster/controller/api_requests.hpp"
#include "edl/cluster/controller/decision.hpp"
#include "edl/core/log.hpp"
#include "edl/core/metric_registry.hpp"

namespace edl::controller {

/// Sends the events of jobs to the API server from a thread of its own, at most 20 per second. Nothing
/// depends on events: they are dropped, and counted, when 1,000 wait, and none is sent twice.
///
/// Thread safety: safe.
class event_sender {
 public:
  /// The references outlive this object.
  event_sender(api_requests& api, metric_registry& m, logger log);
  event_sender(event_sender const&) = delete;

  /// Drops what waits.
  ~event_sender();

  /// Returns at once; `now` is in seconds since the epoch.
  void send(training_job const& job, std::vector<job_event> const& events, double now);

 private:
  void work();

  api_requests& api_;
  metric_registry& metrics_;
  logger const log_;
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::pair<std::string, nlohmann::json>> waiting_;  ///< paths and events
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/event_sender.ipp"
#endif
