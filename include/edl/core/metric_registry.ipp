// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/metric_registry.hpp"

namespace edl {
namespace detail {

inline std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// The family of a sample's name.
inline std::string family_name(std::string name, metric_type type) {
  std::string_view const end = type == metric_type::counter ? "_total"
                               : type == metric_type::info  ? "_info"
                                                            : "";
  if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

inline std::string unit_of(std::string const& family) {
  for (std::string_view const unit : {"seconds", "bytes"})
    if (family.ends_with(fmt::format("_{}", unit))) return std::string(unit);
  return {};
}

inline std::string escaped(std::string_view text, bool quoted) {
  std::string out;
  for (char const c : text) {
    if (c == '\\' || (quoted && c == '"')) out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace detail

EDL_INLINE std::string label_value(std::string_view text) { return detail::escaped(text, true); }

EDL_INLINE void metric_registry::describe(std::string const& name, metric_type k, std::string const& help,
                                          std::vector<double> buckets) {
  invariant(std::ranges::is_sorted(buckets), "the bounds of a histogram ascend");
  invariant(buckets.empty() || k == metric_type::histogram, "only a histogram has bounds");
  std::lock_guard const lock(mutex_);
  families_[name] = {k, help, std::move(buckets)};
}

EDL_INLINE metric_registry::series& metric_registry::find(std::string_view name, std::string_view labels) {
  auto const of = families_.find(name);
  if (of == families_.end()) throw std::out_of_range(fmt::format("no metric {} is described", name));
  auto& all = of->second.all;
  auto const found = all.find(labels);
  return found != all.end() ? found->second : all[std::string(labels)];
}

EDL_INLINE void metric_registry::add(std::string_view name, std::string_view labels, double by) {
  std::lock_guard const lock(mutex_);
  find(name, labels).value += by;
}

EDL_INLINE void metric_registry::set(std::string_view name, double value, std::string_view labels) {
  std::lock_guard const lock(mutex_);
  find(name, labels).value = value;
}

EDL_INLINE void metric_registry::observe(std::string_view name, double value, std::string_view labels) {
  std::lock_guard const lock(mutex_);
  series& s = find(name, labels);
  auto const& buckets = families_.find(name)->second.buckets;
  invariant(s.counts.empty() || s.counts.size() == buckets.size() + 1, "a histogram keeps its bounds");
  s.counts.resize(buckets.size() + 1);
  ++s.counts[std::size_t(std::ranges::lower_bound(buckets, value) - buckets.begin())];
  s.value += value;
}

EDL_INLINE std::string metric_registry::text() const {
  static constexpr std::string_view types[] = {"counter", "gauge", "histogram", "info"};
  std::lock_guard const lock(mutex_);
  std::string out;
  auto const braced = [](std::string const& a, std::string const& b) {
    std::string const both = a.empty() || b.empty() ? a + b : a + "," + b;
    return both.empty() ? std::string() : "{" + both + "}";
  };
  for (auto const& [name, f] : families_) {
    std::string const family = detail::family_name(name, f.type), unit = detail::unit_of(family);
    out += fmt::format("# TYPE {} {}\n", family, types[std::size_t(f.type)]);
    if (!unit.empty()) out += fmt::format("# UNIT {} {}\n", family, unit);
    out += fmt::format("# HELP {} {}\n", family, detail::escaped(f.help, true));
    for (auto const& [labels, s] : f.all) {
      if (f.type != metric_type::histogram) {
        out += fmt::format("{}{} {}\n", name, braced(labels, ""), detail::number_text(s.value));
        continue;
      }
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < s.counts.size(); ++i) {
        sum += s.counts[i];
        std::string bound = i < f.buckets.size() ? detail::number_text(f.buckets[i]) : "+Inf";
        if (bound.find_first_not_of("0123456789") == bound.npos) bound += ".0";  // a float is required
        out += fmt::format("{}_bucket{} {}\n", name, braced(labels, "le=\"" + bound + "\""), sum);
      }
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, braced(labels, ""),
                         detail::number_text(s.value), name, braced(labels, ""), sum);
    }
  }
  return out + "# EOF\n";
}

/// In that format a counter's family has the name of its samples, and there are neither infos nor units.
EDL_INLINE std::string plain_metrics(std::string_view openmetrics) {
  std::string out, family, ending;
  while (!openmetrics.empty()) {
    auto const line = openmetrics.substr(0, openmetrics.find('\n'));
    openmetrics.remove_prefix(std::min(line.size() + 1, openmetrics.size()));
    if (line.starts_with("# EOF") || line.starts_with("# UNIT ")) continue;
    if (!line.starts_with("# ")) {
      out.append(line) += '\n';
      continue;
    }
    auto const name = line.substr(7, line.find(' ', 7) - 7);  // behind "# TYPE " or "# HELP "
    auto rest = line.substr(std::min(7 + name.size(), line.size()));
    if (family != name) family = name, ending.clear();
    if (line.starts_with("# TYPE ")) {
      ending = rest == " counter" ? "_total" : rest == " info" ? "_info" : "";
      if (rest == " info") rest = " gauge";
    }
    out += fmt::format("{}{}{}{}\n", line.substr(0, 7), name, ending, rest);
  }
  return out;
}

}  // namespace edl
