// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "edl/base/checkpoint/job_files.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/journal.hpp"
#include "edl/job/master/server/final_retries.hpp"

namespace edl::master {

struct server_options {
  job_options job;
  checkpoint::job_files files;                 ///< their layout must outlive the server
  std::string output;                          ///< directory for the trained model; empty: none
  std::string best;                            ///< for the best model, with `job_options::judges`
  master::journal journal;                     ///< has been read already
  std::optional<persisted_state> before = {};  ///< its contents
  bool ignore_damaged_checkpoints = false;
  bool relaunch = true;     ///< replace processes that were ended from outside; false: that is a failure
  restore_point anew = {};  ///< where the job starts over if all checkpoints are damaged
  std::chrono::milliseconds step_timeout{60'000};    ///< without a step, until it reports what it waits for
  std::chrono::milliseconds order_timeout{300'000};  ///< for unreachable live members, or for storage
  std::chrono::milliseconds final_timeout{10'000};   ///< for storing the job's final results
  std::chrono::milliseconds storage_pause{1'000};    ///< between two attempts

  final_retries::limits final_limits() const { return {final_timeout, storage_pause}; }
};

/// The timeout of one call: a plain one, and one that involves a disk.
inline constexpr std::chrono::seconds control_timeout{30}, disk_timeout{600};

}  // namespace edl::master
