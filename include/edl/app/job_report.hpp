// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/master/coordinator.hpp"

namespace edl::app {

/// How a job does, for programs, as the annotation `elasticdl/report` has it: one line of JSON, at most 4
/// KiB.
///
///     {"records":N,"total_records":N,"epoch":e,"epochs":E,"version":v,"records_per_s":r,"workers":n,
///      "seconds_left":s,"speeds":[[1,930.5],[2,1800.1]],"standstill_s":0.31}
///
/// `total_records` and `epochs` are 0 for a job without end, `seconds_left` is null where nobody can tell.
/// `speeds`: records a second at each number of workers that the job had (`master::speed_log`).
/// `standstill_s`: how long nobody trained when its members changed the last time.
std::string job_report(master::coordinator const& of, int epochs);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/job_report.ipp"
#endif
