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
  checkpoint::job_files files;                 ///< their layout outlives the server
  std::string output;                          ///< directory for the trained model; empty: none
  std::string best;                            ///< for the best model, with `job_options::judges`
  master::journal journal;                     ///< read already
  std::optional<persisted_state> before = {};  ///< what was in it
  bool ignore_damaged_checkpoints = false;
  bool relaunch = true;     ///< of a process that others than the master end; false: it is a failure
  restore_point anew = {};  ///< where it begins again when all are damaged
  std::chrono::milliseconds step_timeout{60'000};    ///< without a step, until it is told what is waited for
  std::chrono::milliseconds order_timeout{300'000};  ///< for who lives and cannot be reached, or for storage
  std::chrono::milliseconds final_timeout{10'000};   ///< for the storage of what the job ends with
  std::chrono::milliseconds storage_pause{1'000};    ///< between two tries

  final_retries::limits final_limits() const { return {final_timeout, storage_pause}; }
};

/// How long one call may take: one that only asks, and one behind which there is a disk.
inline constexpr std::chrono::seconds control_timeout{30}, disk_timeout{600};

}  // namespace edl::master
