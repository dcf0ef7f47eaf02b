// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"

namespace edl::train {

/// How a job does, for its page.
struct job_facts {
  edl::job const& config;
  master::coordinator const& decisions;
  master::job_progress const& at;
  master::time_point now;
  double time = 0, since = 0;  ///< seconds since 1970: now, and when this process began
  double steps_per_s = 0;
  bool stuck = false;                                   ///< no step has been made for a while
  bool stopped = false;                                 ///< this process ends before its job is over
  std::optional<std::uint64_t> worst = {};              ///< the version whose worst records are known
  std::string host;                                     ///< of this process
  std::function<std::string(process_id)> const& place;  ///< of a process, where somebody knows; empty: nobody
};

/// These as an object of JSON in one line. Names from outside are made UTF-8. Of more than 1,000 processes
/// the rest is counted.
std::string to_json(job_facts const& f);

/// Something that has happened, likewise.
std::string to_json(master::log_line const& what, double time);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/job_facts.ipp"
#endif
