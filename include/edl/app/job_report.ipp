// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "edl/app/job_report.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::app {
namespace detail {

inline constexpr std::size_t longest_history = 8 << 10;

/// The points of a curve; if there are too many lines, it drops every second one.
inline nlohmann::json curve_of(std::string const& history) {
  nlohmann::json lines = nlohmann::json::array();
  for (auto const& line : parse_json(history)) {
    nlohmann::json kept;
    for (char const* const name :
         {"step", "loss", "learning_rate", "records_per_s", "workers", "servers", "metrics"})
      if (auto const it = line.find(name); it != line.end()) kept[name] = *it;
    lines.push_back(std::move(kept));
  }
  while (lines.size() > 1 && lines.dump().size() > longest_history)
    for (std::size_t i = 0, n = lines.size() / 2; i < n; ++i) lines.erase(i);
  return lines.dump().size() > longest_history ? nlohmann::json::array() : lines;
}

}  // namespace detail

EDL_INLINE std::string job_report(master::coordinator const& of, reported const& more) {
  using nlohmann::json;
  // Further digits are below the accuracy of the measurement.
  auto const rounded = [](double x) { return std::round(x * 1000) / 1000; };
  master::job_progress const p = of.progress();
  std::uint64_t const total = p.total_records.value_or(0), done = p.done.records_done;
  json out{{"records", done},
           {"total_records", total},
           {"epoch", p.epoch},
           {"epochs", std::max(0, more.epochs)},
           {"version", p.version},
           {"records_per_s", rounded(p.rate)},
           {"workers", p.workers},
           {"seconds_left", nullptr},
           {"speeds", json::array()},
           {"standstill_s", rounded(std::chrono::duration<double>(of.generations().standstill()).count())}};
  if (total > 0 && p.rate > 0)
    out["seconds_left"] = std::uint64_t(std::ceil(double(total - std::min(done, total)) / p.rate));
  if (more.evaluation) {
    out["evaluation"] = {{"version", more.evaluation->version}, {"metrics", json::object()}};
    for (auto const& [name, value] : more.evaluation->values)
      out["evaluation"]["metrics"][name] = std::isfinite(value) ? json(value) : json(nullptr);
  }
  if (!more.history.empty()) out["history"] = detail::curve_of(more.history);
  if (more.over) out["over"] = true;
  for (auto const& [workers, speed] : of.dispatch().speeds().all())
    out["speeds"].push_back({workers, rounded(speed)});
  return out.dump();
}

}  // namespace edl::app
