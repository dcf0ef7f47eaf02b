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

/// Numbers for Prometheus and what else reads OpenMetrics 1.0. A metric is described before it is used, by
/// the name of its samples: `_total` ends that of a counter, `_info` that of an info, and `_seconds` or
/// `_bytes` (before `_total`) is its unit. Labels are written as they stand in the text,
/// `verb="get",code="200"`; whoever names them sees to it that there are few. Thread safety: safe.
class metric_registry {
 public:
  static constexpr std::string_view content_type =
      "application/openmetrics-text; version=1.0.0; charset=utf-8";

  /// `buckets`: upper bounds of a histogram, rising.
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

/// The same of OpenMetrics as edl writes it in Prometheus's text format 0.0.4, which older clients read.
std::string plain_metrics(std::string_view openmetrics);
inline constexpr std::string_view plain_metrics_type = "text/plain; version=0.0.4; charset=utf-8";

/// `text` as the value of a label, between quotes.
std::string label_value(std::string_view text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/metric_registry.ipp"
#endif
