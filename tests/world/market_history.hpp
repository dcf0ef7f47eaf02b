// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "world/history.hpp"

namespace simulation {

/// A part of a trace of spot markets, as `edl simulate --trace` reads it, and a job in it.
struct market_options {
  std::string prefix, on_demand;    ///< of the files; as the flags of `edl simulate`
  bool lost = false;                ///< 1 stands for machines that are taken away
  std::vector<std::string> zones;   ///< empty: all
  std::size_t from = 0;             ///< the first tick
  double deadline = 24, work = 18;  ///< hours; with two workers
  bool servers = false;             ///< one server; otherwise all-reduce
};

struct market_result {
  history what;
  double usd = 0, hours = 0;          ///< what the job has cost, and when it ended
  double simulated = 0, optimum = 0;  ///< USD by `edl simulate`'s model of the job, and the least possible
  int moves = 0, simulated_moves = 0;
};

/// Real controllers, masters, servers and workers in that market, in the simulated operating system. Each
/// zone is a node, whose processes get notice two minutes before the trace has no machines, and are killed
/// then. Once in an OS process. Throws usage_error for a trace that cannot be read.
market_result run_market_history(std::uint64_t seed, market_options const& o,
                                 nlohmann::json const& definition, std::string const& trace = {});

}  // namespace simulation
