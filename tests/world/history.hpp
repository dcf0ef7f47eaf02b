// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "world/fault.hpp"
#include "world/plan.hpp"
#include "world/world.hpp"

namespace simulation {

/// One history: a job, what was done to it, and what became of it.
struct history {
  plan job;
  std::vector<fault> faults;
  std::vector<std::string> findings;  ///< what must not be; empty: nothing
  std::string timeline;
  std::map<std::string, std::uint64_t> paths;              ///< rare ones, how often
  std::uint64_t hash = 0, events = 0, steps = 0, met = 0;  ///< `met`: faults that met somebody
  world::duration virtual_time{};
};

/// Runs the history of a seed, with these faults or its own. Once in an OS process.
history run_history(std::uint64_t seed, std::optional<std::vector<fault>> faults,
                    std::string const& trace = {});

/// What is wrong with the model that a job left: its weights do not count each record once in each epoch.
/// Empty: nothing. `file`: the content of model.safetensors.
std::string miscounted(plan const& p, std::string const& file);

}  // namespace simulation
