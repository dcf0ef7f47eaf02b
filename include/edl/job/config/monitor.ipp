// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>

#include "edl/cli/flag.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/job/config/monitor.hpp"

namespace edl {
namespace detail {

/// Whether a metric of edl is among these names, those for which less is better. A head's metric is named
/// `head/metric`.
inline bool known_as(std::string_view metric, std::span<std::string_view const> names) {
  std::string_view const own = metric.substr(metric.find_last_of('/') + 1);
  return std::ranges::find(names, own) != names.end() ||
         (own.starts_with("top_") && std::ranges::find(names, "top_k") != names.end());
}

}  // namespace detail

EDL_INLINE monitor read_monitor(std::string_view option, std::string const& text) {
  static constexpr std::array<std::string_view, 8> more{"accuracy", "auc", "precision", "recall",
                                                        "f1",       "r2",  "f1_macro",  "top_k"};
  static constexpr std::array<std::string_view, 6> less{
      "loss", "mse", "rmse", "mae", "mean_absolute_error", "perplexity"};
  auto const colon = text.find(':');
  std::string const metric = text.substr(0, colon);
  if (metric.empty()) throw usage_error(fmt::format("{}={}: expected METRIC[:max|min]", option, text));
  if (colon != std::string::npos) {
    std::string const direction = text.substr(colon + 1);
    if (direction != "max" && direction != "min")
      throw usage_error(fmt::format("{}={}: expected {}:max or {}:min", option, text, metric, metric));
    return {metric, direction == "max"};
  }
  if (detail::known_as(metric, more)) return {metric, true};
  if (detail::known_as(metric, less)) return {metric, false};
  throw usage_error(
      fmt::format("{}={}: which values are better? Write {}:max or {}:min", option, text, metric, metric));
}

EDL_INLINE early_stopping read_early_stopping(std::string const& text) {
  auto const refuse = [&](std::string const& part) {
    throw usage_error(fmt::format(
        "--early_stopping={}: '{}' is not patience=N, of at least 1, or min_delta=X, of at least 0", text,
        part));
  };
  cli::words const parts = cli::list_of("early_stopping", text);
  early_stopping s{.monitor = read_monitor("--early_stopping", parts.empty() ? "" : parts.front())};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    auto const at = parts[i].find('=');
    std::string const name = parts[i].substr(0, at),
                      value = at == std::string::npos ? "" : parts[i].substr(at + 1);
    auto const n = number_from<double>(value);
    if (!n || !std::isfinite(*n)) refuse(parts[i]);
    if (name == "patience" && *n >= 1 && *n <= 1e9 && *n == std::floor(*n))
      s.patience = std::uint32_t(*n);
    else if (name == "min_delta" && *n >= 0)
      s.min_delta = *n;
    else
      refuse(parts[i]);
  }
  return s;
}

EDL_INLINE std::optional<rate_plateau> plateau_of_model(update_rule const& rule) {
  auto const found = rule.plateau();
  if (!found) return std::nullopt;
  return rate_plateau{read_monitor(plateau_metric, std::string(found->metric)), *found};
}

}  // namespace edl
