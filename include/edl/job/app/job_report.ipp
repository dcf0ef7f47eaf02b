// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "edl/core/inline.hpp"
#include "edl/job/app/job_report.hpp"

namespace edl::app {

EDL_INLINE std::string job_report(master::coordinator const& of, reported const& more) {
  using nlohmann::json;
  // More digits than that nobody can measure.
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
  if (more.over) out["over"] = true;
  for (auto const& [workers, speed] : of.dispatch().speeds().all())
    out["speeds"].push_back({workers, rounded(speed)});
  return out.dump();
}

}  // namespace edl::app
