// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace edl {

/// A metric for a job's decisions, and which of two values is better.
struct monitor {
  std::string metric;
  bool higher = true;

  bool better(double value, double than) const { return higher ? value > than : value < than; }
};

/// When a job ends before its last epoch: after `patience` consecutive evaluations without an improvement of
/// more than `min_delta`.
struct early_stopping {
  edl::monitor monitor;
  std::uint32_t patience = 3;
  double min_delta = 0;
};

/// Reads `METRIC`, `METRIC:max` or `METRIC:min`. Without a direction it follows from the name, for metrics of
/// edl. Throws usage_error, which names `flag`.
monitor read_monitor(std::string_view flag, std::string const& text);

/// Reads `METRIC[:max|min][,patience=N][,min_delta=X]`, likewise.
early_stopping read_early_stopping(std::string_view flag, std::string const& text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/monitor.ipp"
#endif
