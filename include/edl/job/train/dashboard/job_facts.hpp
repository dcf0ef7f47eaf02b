// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"

namespace edl::train {

/// The state of a job, for its page.
struct job_facts {
  edl::job const& config;
  master::coordinator const& decisions;
  master::job_progress const& at;
  master::time_point now;
  double time = 0, since = 0;  ///< seconds since 1970: now, and at the start of this process
  double steps_per_s = 0;
  bool stuck = false;                                   ///< no step for a while
  bool stopped = false;                                 ///< this process ends before its job does
  std::optional<std::uint64_t> worst = {};              ///< the version whose worst records are known
  std::string host;                                     ///< of this process
  std::function<std::string(process_id)> const& place;  ///< of a process, if known; may be empty
};

/// Converts them to a one-line JSON object. Converts external names to UTF-8. Lists at most 1,000 processes,
/// and counts the rest.
std::string to_json(job_facts const& f);

/// An event, likewise.
std::string to_json(master::log_line const& what, double time);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/job_facts.ipp"
#endif
