// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/cluster/controller/metrics.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE void metrics::describe(std::string const& name, metric_type k, std::string const& help,
                                  std::vector<double> buckets) {
  std::lock_guard const lock(mutex_);
  families_[name] = {k, help, std::move(buckets)};
}

EDL_INLINE void metrics::add(std::string const& name, std::string const& labels, double by) {
  std::lock_guard const lock(mutex_);
  families_.at(name).all[labels].value += by;
}

EDL_INLINE void metrics::set(std::string const& name, double value, std::string const& labels) {
  std::lock_guard const lock(mutex_);
  families_.at(name).all[labels].value = value;
}

EDL_INLINE void metrics::observe(std::string const& name, double value, std::string const& labels) {
  std::lock_guard const lock(mutex_);
  family& f = families_.at(name);
  series& s = f.all[labels];
  s.counts.resize(f.buckets.size() + 1);
  auto const bucket = std::lower_bound(f.buckets.begin(), f.buckets.end(), value) - f.buckets.begin();
  ++s.counts[std::size_t(bucket)];
  s.value += value;
}

EDL_INLINE std::string metrics::text() const {
  std::lock_guard const lock(mutex_);
  std::string out;
  auto const braced = [](std::string const& a, std::string const& b) {
    std::string const both = a.empty() || b.empty() ? a + b : a + "," + b;
    return both.empty() ? std::string() : "{" + both + "}";
  };
  for (auto const& [name, f] : families_) {
    char const* const type = f.type == metric_type::counter ? "counter"
                             : f.type == metric_type::gauge ? "gauge"
                                                            : "histogram";
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, f.help, name, type);
    for (auto const& [labels, s] : f.all) {
      if (f.type != metric_type::histogram) {
        out += fmt::format("{}{} {}\n", name, braced(labels, ""), s.value);
        continue;
      }
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < s.counts.size(); ++i) {
        sum += s.counts[i];
        std::string const le = i < f.buckets.size() ? fmt::format("le=\"{}\"", f.buckets[i]) : "le=\"+Inf\"";
        out += fmt::format("{}_bucket{} {}\n", name, braced(labels, le), sum);
      }
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, braced(labels, ""), s.value, name,
                         braced(labels, ""), sum);
    }
  }
  return out;
}

}  // namespace edl::controller
