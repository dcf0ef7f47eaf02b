// SPDX-License-Identifier: Apache-2.0
#include "simulate/spot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/table.hpp"
#include "simulate/spot_policies.hpp"

namespace edl::simulate {
namespace {

double mean(std::vector<double> const& of) {
  return of.empty() ? 0 : std::accumulate(of.begin(), of.end(), 0.0) / double(of.size());
}

void add(spot_row& row, spot_result const& r, double optimum, double published = 0, double counted = 0) {
  row.cost.push_back(r.cost);
  row.ratio.push_back(r.cost / optimum);
  row.published.push_back(published);
  row.as_published.push_back(counted);
  row.on_demand += r.on_demand;
  row.moves += r.moves;
  row.missed += r.missed;
}

// Each zone alone: the mean of them.
spot_result alone(spot_trace const& trace, spot_case const& c, spot_rules const& by, double& published,
                  double& counted) {
  spot_result all;
  for (std::size_t z = 0; z < c.zones.size(); ++z) {
    spot_case one = c;
    one.zones = {c.zones[z]};
    spot_job job(trace, one, by);
    uniform_progress policy(true);
    spot_result const r = job.run(policy);
    double const part = 1 / double(c.zones.size());
    all.cost += r.cost * part;
    all.on_demand += r.on_demand * part;
    all.missed = all.missed || r.missed;
    published += c.alone.empty() ? 0 : c.alone[z] * part;
    counted += (r.published + r.last_tick) * part;
  }
  return all;
}

}  // namespace

std::vector<spot_row> compare_spot(spot_trace const& trace, std::vector<spot_case> const& cases,
                                   spot_rules const& slow, spot_rules const& quick) {
  std::string const at = fmt::format("starts of {:g} s", slow.standstill);
  std::vector<spot_row> rows{{.name = "OPTIMUM", .strategy = "optimum, " + at},
                             {.name = "ONE ZONE", .strategy = "Uniform Progress in one zone"},
                             {.name = "UNIFORM", .strategy = "Uniform Progress in all zones"},
                             {.name = "SKYNOMAD", .strategy = "SkyNomad"},
                             {.name = "EDL", .strategy = "edl, " + at},
                             {.name = "OPTIMUM", .strategy = "optimum, edl's own moves"},
                             {.name = "EDL'S MOVES", .strategy = "edl, its own moves"}};
  for (spot_case const& c : cases) {
    double const best = spot_optimum(trace, c, slow), least = spot_optimum(trace, c, quick);
    auto const run = [&](spot_row& row, auto&& policy, spot_rules const& by, double optimum,
                         double published) {
      spot_job job(trace, c, by);
      spot_result const r = job.run(policy);
      add(row, r, optimum, published, published > 0 ? r.published : 0);
    };
    add(rows[0], {.cost = best}, best, c.published[optimal], c.published[optimal] > 0 ? best : 0);
    double published = 0, counted = 0;
    spot_result const single = alone(trace, c, slow, published, counted);
    add(rows[1], single, best, published, published > 0 ? counted : 0);
    spot_job const empty(trace, c, slow);
    run(rows[2], uniform_progress(false), slow, best, c.published[uniform_anywhere]);
    run(rows[3], skynomad(empty), slow, best, c.published[published_skynomad]);
    run(rows[4], edl_policy(empty), slow, best, 0);
    add(rows[5], {.cost = least}, least);
    run(rows[6], edl_policy(empty), quick, least, 0);
  }
  return rows;
}

std::string to_table(std::vector<spot_case> const& cases, std::vector<spot_row> const& rows) {
  std::vector<std::vector<std::string>> all{{"STRATEGY", "MEAN USD", "TO OPTIMUM", "WORST", "MISSED", "MOVES",
                                             "ON DEMAND", "PUBLISHED", "DIFFERENCE"}};
  for (spot_row const& r : rows) {
    double const published = mean(r.published), counted = mean(r.as_published);
    all.push_back({r.strategy, fmt::format("{:.2f}", mean(r.cost)), fmt::format("{:.4f}", mean(r.ratio)),
                   fmt::format("{:.3f}", *std::max_element(r.ratio.begin(), r.ratio.end())),
                   fmt::format("{}", r.missed), fmt::format("{}", r.moves),
                   fmt::format("{:.1f} h", r.on_demand),
                   published > 0 ? fmt::format("{:.2f}", published) : "-",
                   published > 0 ? fmt::format("{:+.2f} %", 100 * (counted / published - 1)) : "-"});
  }
  std::string text = fmt::format("simulated, not measured: one job in each of {} windows\n\n{}", cases.size(),
                                 tool::to_table(all));
  std::vector<std::string> heads{"CASE", "WINDOWS", "OPTIMUM"};
  for (spot_row const& r : rows)
    if (r.name != heads[2]) heads.push_back(r.name);
  std::vector<std::vector<std::string>> groups{heads};
  std::vector<std::string> done;
  for (spot_case const& group : cases) {
    if (std::find(done.begin(), done.end(), group.name) != done.end()) continue;
    done.push_back(group.name);
    double windows = 0, optimum = 0;
    auto const sum = [&](spot_row const& r) {
      double total = windows = 0;
      for (std::size_t i = 0; i < cases.size(); ++i)
        if (cases[i].name == group.name) total += r.cost[i], ++windows;
      return total;
    };
    std::vector<std::string> row{group.name};
    for (spot_row const& r : rows) {
      double const usd = sum(r);
      if (&r == &rows[0])
        row.insert(row.end(), {fmt::format("{}", windows), fmt::format("{:.2f}", usd / windows)});
      if (r.name == heads[2])
        optimum = usd;
      else
        row.push_back(fmt::format("{:.3f}", usd / optimum));
    }
    groups.push_back(std::move(row));
  }
  return text + "\n" + tool::to_table(groups);
}

nlohmann::json to_json(std::vector<spot_case> const& cases, std::vector<spot_row> const& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    nlohmann::json one{{"case", cases[i].name}, {"simulated", true}, {"start_tick", cases[i].start}};
    for (spot_row const& r : rows) {
      nlohmann::json of{{"strategy", r.strategy}, {"usd", r.cost[i]}, {"to_optimum", r.ratio[i]}};
      if (r.published[i] > 0)
        of["published_usd"] = r.published[i], of["counted_as_published_usd"] = r.as_published[i];
      one["strategies"].push_back(std::move(of));
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace edl::simulate
