// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::simulate {

inline constexpr double hour = 3600;  ///< seconds

/// A zone's market: what it offers in each tick. Prices in USD per hour of all machines of the job.
struct spot_zone {
  std::string name, region, continent;  ///< `us-east4-a`, `us-east4`, `us`
  double on_demand = 0;
  std::vector<char> up;       ///< whether spot machines can be had
  std::vector<double> price;  ///< of them
};

/// Zones over the same ticks of equal length.
struct spot_trace {
  double tick = 600;  ///< seconds
  std::vector<spot_zone> zones;
};

/// Reads PREFIX-available.csv (a first column `tick` or `time`, then 0 or 1 of each zone) and
/// PREFIX-prices.csv (`zone,spot_usd_per_hour`, or a column of prices for each zone). Zones that only one of
/// them has are left out. `tick`: seconds between lines that are numbered only. `on_demand`: a price for all,
/// then those of zones that begin so: `82.5,europe=90.9`. `lost`: 1 stands for machines that are taken away.
/// Throws usage_error that names file and line.
spot_trace read_spot(std::string const& prefix, double tick, std::string const& on_demand, bool lost);

/// The strategies of the published tables that are reproduced.
enum : std::size_t { optimal, uniform_anywhere, published_skynomad, published_count };

/// What is to be computed, in which window, and what others paid in theirs.
struct spot_case {
  std::string name;
  std::vector<std::size_t> zones;                                        ///< in which the job may run
  std::size_t start = 0;                                                 ///< the window's first tick
  int ticks = 0;                                                         ///< the deadline
  double work = 0;                                                       ///< seconds of training
  double gigabytes = 0;                                                  ///< of its state
  std::vector<double> published = std::vector<double>(published_count);  ///< USD; 0: none
  std::vector<double> alone{};  ///< ... of Uniform Progress in each zone alone
};

/// The cases of a published table. Throws usage_error that names file and line.
std::vector<spot_case> read_published(std::string const& path, spot_trace const& trace);

}  // namespace edl::simulate
