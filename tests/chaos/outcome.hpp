// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chaos/fault.hpp"

namespace chaos {

/// What became of a job.
struct outcome {
  std::vector<std::string> failures;  ///< empty: all is as promised
  std::vector<fault> faults;
  std::vector<sample> samples;
  std::uint64_t lost = 0, repeated = 0;
  int restarted = 0;              ///< bystanders that did not stay
  int paused_lost = 0;            ///< workers that a silence below 5 s has cost their place
  std::optional<bool> same_bits;  ///< as an undisturbed run's; nothing: not compared
  std::string best;               ///< of a job that keeps it: "version 96, accuracy 0.92, ended at 160"
  double accuracy = 0, undisturbed = 0;
  double seconds = 0;
  std::string log;
};

}  // namespace chaos
