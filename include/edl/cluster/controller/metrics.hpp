// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace edl::controller {

/// Numbers for Prometheus, in its text format (version 0.0.4). A metric is described before it is used.
/// Labels are written as they stand in the text: `verb="get",code="200"`; whoever names them sees to it that
/// there are few. Thread safety: safe.
class metrics {
 public:
  enum class metric_type { counter, gauge, histogram };

  /// `buckets`: upper bounds of a histogram, rising.
  void describe(std::string const& name, metric_type k, std::string const& help,
                std::vector<double> buckets = {});

  void add(std::string const& name, std::string const& labels = "", double by = 1);
  void set(std::string const& name, double value, std::string const& labels = "");
  void observe(std::string const& name, double value, std::string const& labels = "");

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
    std::map<std::string, series> all{};
  };
  mutable std::mutex mutex_;
  std::map<std::string, family> families_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/metrics.ipp"
#endif
