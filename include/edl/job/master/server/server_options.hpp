// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "edl/core/layout.hpp"
#include "edl/job/checkpoint/checkpoint.hpp"
#include "edl/job/checkpoint/manifest.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/journal.hpp"

namespace edl::master {

struct server_options {
  job_options job;
  parameter_layout const& layout;  ///< outlives the server
  std::string checkpoint_dir;      ///< empty: none
  std::uint64_t keep_checkpoint_max = 0;
  std::string output;                          ///< directory for the trained model; empty: none
  std::string best;                            ///< for the best model, with `job_options::judges`
  checkpoint::manifest manifest;               ///< of every checkpoint, but for version and files
  master::journal journal;                     ///< read already
  std::optional<persisted_state> before = {};  ///< what was in it
  bool ignore_damaged_checkpoints = false;
  bool relaunch = true;     ///< of a process that others than the master end; false: it is a failure
  bool adopts = false;      ///< nobody takes part before the platform has said who runs
  restore_point anew = {};  ///< where it begins again when all are damaged
  checkpoint::permission allowed = {};               ///< to write checkpoints; throws when it is not
  std::chrono::milliseconds step_timeout{60'000};    ///< without a step, until it is told what is waited for
  std::chrono::milliseconds order_timeout{300'000};  ///< for who lives and cannot be reached, or for storage
  std::chrono::milliseconds final_timeout{10'000};   ///< for the storage of what the job ends with
  std::chrono::milliseconds storage_pause{1'000};    ///< between two tries
};

/// How long one call may take: one that only asks, and one behind which there is a disk.
inline constexpr std::chrono::seconds control_timeout{30}, disk_timeout{600};

}  // namespace edl::master
