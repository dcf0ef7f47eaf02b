// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace edl {

/// A metric that a job decides by, and which of two values is the better one.
struct monitor {
  std::string metric;
  bool higher = true;

  bool better(double value, double than) const { return higher ? value > than : value < than; }
};

/// When a job ends before its last epoch: after `patience` evaluations in a row of which none was better by
/// more than `min_delta`.
struct early_stopping {
  edl::monitor monitor;
  std::uint32_t patience = 3;
  double min_delta = 0;
};

/// Reads `METRIC`, `METRIC:max` or `METRIC:min`. Without a direction it follows from the name, where that is
/// one of the metrics that come with edl. Throws usage_error, which names `flag`.
monitor read_monitor(std::string_view flag, std::string const& text);

/// Reads `METRIC[:max|min][,patience=N][,min_delta=X]`, likewise.
early_stopping read_early_stopping(std::string_view flag, std::string const& text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/monitor.ipp"
#endif
