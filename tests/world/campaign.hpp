// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "world/fault.hpp"

namespace simulation {

/// What a process of its own has told of a history.
struct outcome {
  std::uint64_t seed = 0, hash = 0, events = 0, steps = 0, met = 0;
  std::string job;  ///< in words
  std::vector<fault> faults;
  std::vector<std::string> findings;  ///< with those that only its parent sees: it crashed, or never ended
  std::string timeline;
  std::map<std::string, std::uint64_t> paths;
  double virtual_seconds = 0;
  bool cluster = false;  ///< it was one of a cluster
  double seconds = 0;    ///< of a processor
};

struct campaign_options {
  std::uint64_t first = 1;
  std::chrono::seconds time{0}, processor{0};  ///< real, or of a processor; 0: one history
  int jobs = 2;
  std::chrono::seconds limit{60};                 ///< of a processor, for each history
  std::optional<std::vector<fault>> faults = {};  ///< instead of those of the seed
  bool shrink = true;
  bool stop_at_first = false;  ///< failure
  bool cluster = false;        ///< of TrainingJobs; faults are not given, and not shrunk
  std::string trace;           ///< of a single history
};

/// Runs a history in a child.
outcome run_child(std::uint64_t seed, std::optional<std::vector<fault>> const& faults,
                  campaign_options const& o);

/// The fewest faults, found by leaving some out, with which the history still fails; with its outcome.
outcome shrink(outcome failing, campaign_options const& o);

/// Runs seed after seed, and prints what became of them. How many failed.
int run_campaign(campaign_options const& o);

/// Runs the histories of a file, which have failed once. How many fail. Throws std::runtime_error when it
/// cannot be read.
int replay(std::string const& list, campaign_options const& o);

void print(outcome const& one);  ///< a failing one: why, its faults, its time line, how to repeat it

}  // namespace simulation
