// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "edl/base/net/security/token.hpp"
#include "edl/cluster/controller/event_sender.hpp"
#include "edl/cluster/controller/job_objects.hpp"
#include "edl/cluster/controller/rate_limit.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE event_sender::event_sender(api_requests& api, metric_registry& m, logger log)
    : api_(api), metrics_(m), log_(std::move(log)), thread_([this] { work(); }) {}

EDL_INLINE event_sender::~event_sender() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
  }
  there_.notify_all();
  thread_.join();
}

EDL_INLINE void event_sender::send(kubernetes::training_job const& job, std::vector<job_event> const& events,
                                   double now) {
  constexpr std::size_t most = 1000;
  std::lock_guard const lock(mutex_);
  for (job_event const& e : events) {
    if (waiting_.size() >= most) {
      metrics_.add("edl_controller_events_dropped_total");
      continue;
    }
    auto const id = net::token::random().secret().substr(0, 16);
    waiting_.emplace_back(core_path(job.space, "events"), event_of(job, e, now, id));
  }
  there_.notify_one();
}

EDL_INLINE void event_sender::work() {
  rate_limit limit(20, 50);
  std::unique_lock lock(mutex_);
  for (;;) {
    there_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    auto const [path, object] = std::move(waiting_.front());
    waiting_.pop_front();
    auto const wait = limit.reserve(clock::now());
    if (there_.wait_for(lock, wait, [&] { return stopped_; })) return;
    lock.unlock();
    try {
      api_.create(path, object);
    } catch (std::exception const& e) {
      log_.debug(fmt::format("could not send an event: {}", e.what()));
    } catch (deposed const&) {
    }
    lock.lock();
  }
}

}  // namespace edl::controller
