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

/// Sends jobs' Events to the API server from its own thread, at most 20 per second after a burst of 50.
/// Events are best effort: while 1,000 are queued, further ones are dropped and counted, and none is retried.
///
/// Thread safety: safe.
class event_sender {
 public:
  /// The references must outlive this object.
  event_sender(api_requests& api, metric_registry& m, logger log);
  event_sender(event_sender const&) = delete;

  /// Drops queued events.
  ~event_sender();

  /// Returns at once; `now` is in seconds since the epoch.
  void send(kubernetes::training_job const& job, std::vector<job_event> const& events, double now);

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
