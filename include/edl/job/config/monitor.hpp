// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edl/compute/optim/rule.hpp"

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

/// When evaluations reduce the learning rate (`reduce_on_plateau`).
struct rate_plateau {
  edl::monitor monitor;
  plateau_options how;
};

/// How errors name the metric of a `reduce_on_plateau`.
inline constexpr std::string_view plateau_metric = "the model's schedule, .metric";

/// That of a model's schedule; empty: it has none. Throws usage_error for a metric whose direction is
/// unknown.
std::optional<rate_plateau> plateau_of_model(update_rule const& rule);

/// Reads `METRIC`, `METRIC:max` or `METRIC:min`. Without a direction it follows from the name, for metrics of
/// edl. Throws usage_error, which names `option`, e.g. "--save_best".
monitor read_monitor(std::string_view option, std::string const& text);

/// Reads the value of --early_stopping, `METRIC[:max|min][,patience=N][,min_delta=X]`, likewise.
early_stopping read_early_stopping(std::string const& text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/monitor.ipp"
#endif
