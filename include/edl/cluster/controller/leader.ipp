// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/controller/leader.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {
EDL_INLINE leader::leader(kubernetes::access via, election e, std::string path, std::string name,
                          election::options times, std::function<void(bool leads)> changed, logger log)
    // A request that hangs must leave time for another attempt.
    : client_(std::move(via), {.timeout = times.renew_deadline / 3,
                               .retry_timeout = std::chrono::milliseconds(0),
                               .agent = "edl-controller-lease"}),
      path_(std::move(path)),
      name_(std::move(name)),
      times_(times),
      changed_(std::move(changed)),
      log_(std::move(log)),
      election_(std::move(e)),
      seen_(clock::now()),
      thread_([this] { run(); }) {}

EDL_INLINE leader::~leader() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }
  thread_.join();
}

EDL_INLINE bool leader::leads() const {
  std::lock_guard const lock(mutex_);
  return !stopped_ && election_.leads(clock::now());
}

EDL_INLINE std::chrono::steady_clock::duration leader::silent() const { return clock::now() - seen_.load(); }

EDL_INLINE bool leader::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_.wait_for(lock, time, [&] { return stopped_; });
}

EDL_INLINE void leader::turn() {
  nlohmann::json lease;
  try {
    lease = client_.get(path_ + "/" + name_);
  } catch (kubernetes::api_error const& e) {
    if (e.code() != 404) throw;
  }
  auto const sent = clock::now();
  std::optional<nlohmann::json> next;
  {
    std::lock_guard const lock(mutex_);
    next = election_.propose(lease, sent, stamp_of(wall_seconds(), true));
  }
  if (!next) return;
  if (lease.is_null())
    client_.create(path_, *next);
  else
    client_.replace(path_ + "/" + name_, *next);
  std::lock_guard const lock(mutex_);
  election_.accepted(sent);
}

EDL_INLINE void leader::run() {
  do {
    std::string trouble;
    try {
      turn();
    } catch (kubernetes::api_error const& e) {
      // 409: another candidate was faster; the next turn reads what it wrote.
      if (e.code() != 409) trouble = e.what();
    } catch (error const& e) {
      trouble = e.what();
    }
    seen_ = clock::now();
    bool const now = leads();
    if (!trouble.empty() && trouble != trouble_)
      log_.warning(fmt::format("the lease {} could not be {}: {}; trying again", name_,
                               now ? "renewed" : "read or taken", trouble));
    trouble_ = trouble;
    if (now != std::exchange(was_, now)) {
      std::string holder;
      {
        std::lock_guard const lock(mutex_);
        holder = election_.holder();
      }
      log_.info(now ? fmt::format("this controller leads (lease {})", name_)
                    : fmt::format("this controller no longer leads{}",
                                  holder.empty() ? "" : ": " + holder + " does"));
      changed_(now);
    }
  } while (pause(times_.retry));
}

EDL_INLINE void leader::resign() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
    election_.lost();  // from here on this process does not act; others may only take over later
  }
  try {
    auto const lease = client_.get(path_ + "/" + name_);
    std::optional<nlohmann::json> last;
    {
      std::lock_guard const lock(mutex_);
      last = election_.release(lease, stamp_of(wall_seconds(), true));
    }
    if (last) client_.replace(path_ + "/" + name_, *last);
  } catch (error const&) {
    // The lease expires by itself.
  }
}

}  // namespace edl::controller
