// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace edl {

enum class metric_type { counter, gauge, histogram, info };

/// Metrics for Prometheus and other readers of OpenMetrics 1.0. Describe a metric before its first use, by
/// the name of its samples: a counter's ends in `_total`, an info's in `_info`, and `_seconds` or `_bytes`
/// (before `_total`) is the unit. Labels are written verbatim, `verb="get",code="200"`; the caller keeps
/// their number small. Thread safety: safe.
class metric_registry {
 public:
  static constexpr std::string_view content_type =
      "application/openmetrics-text; version=1.0.0; charset=utf-8";

  /// `buckets`: a histogram's upper bounds, ascending.
  void describe(std::string const& name, metric_type k, std::string const& help,
                std::vector<double> buckets = {});

  void add(std::string_view name, std::string_view labels = "", double by = 1);
  void set(std::string_view name, double value, std::string_view labels = "");
  void observe(std::string_view name, double value, std::string_view labels = "");

  std::string text() const;

 private:
  struct series {
    double value = 0;
    std::vector<std::uint64_t> counts{};  ///< of a histogram: by bucket, then all
  };
  struct family {
    metric_type type;
    std::string help;
    std::vector<double> buckets;
    std::map<std::string, series, std::less<>> all{};
  };
  mutable std::mutex mutex_;
  series& find(std::string_view name, std::string_view labels);  // with the mutex
  std::map<std::string, family, std::less<>> families_;
};

/// Converts OpenMetrics as edl writes it to Prometheus's text format 0.0.4, which older clients read.
std::string plain_metrics(std::string_view openmetrics);
inline constexpr std::string_view plain_metrics_type = "text/plain; version=0.0.4; charset=utf-8";

/// `text`, escaped as the value of a label between quotes.
std::string label_value(std::string_view text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/metric_registry.ipp"
#endif
