// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace edl::controller {

/// What the controller remembers of a job besides what the API server keeps. Nothing depends on it: a new
/// controller begins without, and finds the same out again. Times are seconds since 1970; 0: not now.
struct job_memo {
  /// What the API server refused, by a reason and in words; it is asked again at `retry_at`, or when the
  /// job's generation is another. Empty: nothing.
  std::string stalled{}, why{};
  double retry_at = 0;
  std::int64_t generation = 0;

  /// What Kueue decided last, for a job with a queue: whether it may not run, and its largest size.
  bool queue_decided = false, queue_holds = false;
  std::uint32_t queue_most = 0;  ///< 0: no bound

  double gang_opened = 0;                      ///< the scheduler was told that the gang is placed
  std::string requested_size{};                ///< the size that the master was told last
  std::vector<std::uint32_t> leave{};          ///< workers that the last shrinking was meant for
  double size_refused_until = 0;               ///< a size that was refused is not told again before
  std::map<std::string, double> nodes_gone{};  ///< nodes of the job's pods, and since when they do not exist
  std::map<std::string, std::string> nodes_short{};  ///< and of what they were short
  double pause_until = 0;                            ///< before the next master is made
  std::string master{};                              ///< uid of the master's pod that lives, or lived last
  double master_since = 0;                           ///< it was seen first
  std::uint32_t early_losses =
      0;                     ///< masters that were lost soon after their start, without one that was not
  double suspend_since = 0;  ///< the master was told to suspend the job
  double status_written = 0;
};

}  // namespace edl::controller
