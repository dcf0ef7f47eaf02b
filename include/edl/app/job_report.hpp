// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/observe/metric_history.hpp"

namespace edl::app {

/// The master's data for a report, besides its decisions.
struct reported {
  int epochs = 0;
  std::optional<train::metric_history::entry> evaluation = {};  ///< the last one
  std::string history = {};                                     ///< its lines, as a JSON array; empty: none
  bool over = false;  ///< the job is finished, and this is its last report
};

/// The state of a job, for programs, as in the annotation `elasticdl/report`. It is one line of JSON, at most
/// 4 KiB for a model with a few metrics, plus at most 8 KiB of history.
///
///     {"records":N,"total_records":N,"epoch":e,"epochs":E,"version":v,"records_per_s":r,"workers":n,
///      "seconds_left":s,"speeds":[[1,930.5],[2,1800.1]],"standstill_s":0.31,
///      "evaluation":{"version":v,"metrics":{"accuracy":0.97}},
///      "history":[{"step":s,"loss":0.5,"learning_rate":0.01,"records_per_s":r,"workers":n,"servers":m},
///                 {"step":s,"metrics":{"accuracy":0.97}}],"over":true}
///
/// `total_records` and `epochs` are 0 for an unlimited job, `seconds_left` is null if it is unknown.
/// `speeds`: records per second at each number of workers that the job had (`master::speed_log`).
/// `standstill_s`: how long no worker trained at the last change of members. `history`: the job's curve in a
/// few lines, for overviews of many jobs. `evaluation` is absent before the first one; a metric that is not
/// finite is null.
std::string job_report(master::coordinator const& of, reported const& more);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/job_report.ipp"
#endif
