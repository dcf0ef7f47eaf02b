// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/observe/metric_history.hpp"

namespace edl::app {

/// What a master knows of its job beside its decisions.
struct reported {
  int epochs = 0;
  std::optional<train::metric_history::entry> evaluation = {};  ///< the last one
  std::string history = {};  ///< lines of it, an array of JSON; empty: none
  bool over = false;         ///< the job is finished, and this is its last report
};

/// How a job does, for programs, as the annotation `elasticdl/report` has it. It is one line of JSON, at most
/// 4 KiB with a model of a few metrics, and at most 8 KiB of history.
///
///     {"records":N,"total_records":N,"epoch":e,"epochs":E,"version":v,"records_per_s":r,"workers":n,
///      "seconds_left":s,"speeds":[[1,930.5],[2,1800.1]],"standstill_s":0.31,
///      "evaluation":{"version":v,"metrics":{"accuracy":0.97}},
///      "history":[{"step":s,"loss":0.5,"learning_rate":0.01,"records_per_s":r,"workers":n,"servers":m},
///                 {"step":s,"metrics":{"accuracy":0.97}}],"over":true}
///
/// `total_records` and `epochs` are 0 for a job without end, `seconds_left` is null where nobody can tell.
/// `speeds`: records a second at each number of workers that the job had (`master::speed_log`).
/// `standstill_s`: how long nobody trained when its members changed the last time.
/// `history`: its curve in few lines, for whoever looks at many jobs.
/// `evaluation` is absent before the first one; a metric that is no finite number is null.
std::string job_report(master::coordinator const& of, reported const& more);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/job_report.ipp"
#endif
