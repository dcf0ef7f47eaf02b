// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "edl/cluster/controller/pools.hpp"

namespace edl::controller {

/// What the controller remembers about a job besides the API server's objects. It is a cache: a new
/// controller starts without it and finds the same facts again. Times are seconds since 1970; 0: unset.
struct job_memo {
  /// What the API server refused: a reason and a sentence. The controller retries at `retry_at`, or when the
  /// job's generation changes. Empty: nothing.
  std::string stalled{}, why{};
  double retry_at = 0;
  std::int64_t generation = 0;

  /// Kueue's last decision about a job with a queue: whether it must not run, and its largest size.
  bool queue_decided = false, queue_holds = false;
  std::uint32_t queue_most = 0;  ///< 0: no bound

  double gang_opened = 0;              ///< when the scheduler was last notified that the gang is placed
  std::string requested_size{};        ///< the size last requested of the master
  std::vector<std::uint32_t> leave{};  ///< the workers to remove in the last shrink
  double size_refused_until = 0;       ///< a refused size is not requested again before this time
  std::map<std::string, double> nodes_gone{};  ///< missing nodes on which the job has pods, and since when
  std::map<std::string, std::string> nodes_short{};  ///< nodes under pressure, and what they lack
  double pause_until = 0;                            ///< no new master before this time
  std::string master{};                              ///< uid of the current master's pod, or of the last one
  double master_since = 0;                           ///< when the controller first saw it
  std::uint32_t early_losses = 0;                    ///< consecutive masters lost soon after their start
  double suspend_since = 0;                          ///< when the master was asked to suspend the job
  double status_written = 0;
  pool_memo pools{};
};

}  // namespace edl::controller
