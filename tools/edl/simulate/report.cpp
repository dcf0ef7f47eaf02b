// SPDX-License-Identifier: Apache-2.0
#include "simulate/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/table.hpp"
#include "edl/core/chart.hpp"

namespace edl::simulate {
namespace {

using nlohmann::json;

std::string time(double seconds) {
  return seconds >= 3600 ? fmt::format("{:.3f} h", seconds / 3600) : fmt::format("{:.1f} s", seconds);
}

std::vector<std::string> row(std::string const& name, std::vector<double> const& waited,
                             std::vector<double> const& done, std::string const& use,
                             std::vector<double> const& services, int plans) {
  std::vector<std::string> all{name, fmt::format("{}", done.size())};
  for (auto const* values : {&waited, &done}) {
    summary const s = summary_of(*values);
    for (double v : {s.mean, s.median, s.p99}) all.push_back(time(v));
  }
  all.push_back(use);
  summary const s = summary_of(services);
  for (double v : {s.mean, s.median, s.p99}) all.push_back(services.empty() ? "-" : time(v));
  all.push_back(fmt::format("{}", plans));
  return all;
}

std::string use_of(outcome const& o) {
  std::string all;
  for (std::size_t r = 0; r < o.resources.size(); ++r)
    all += fmt::format("{}{} {:.1f} %", r > 0 ? ", " : "", o.resources[r], 100 * o.utilisation[r]);
  return all;
}

}  // namespace

summary summary_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  auto const at = [&](double part) {
    return values[std::min(values.size() - 1, std::size_t(part * double(values.size())))];
  };
  return {std::accumulate(values.begin(), values.end(), 0.0) / double(values.size()), at(0.5), at(0.99),
          values.size()};
}

std::vector<double> waits(outcome const& of) {
  std::vector<double> all;
  for (job_outcome const& j : of.jobs) all.push_back(j.started - j.submitted);
  return all;
}

std::vector<double> completions(outcome const& of) {
  std::vector<double> all;
  for (job_outcome const& j : of.jobs) all.push_back(j.completed - j.submitted);
  return all;
}

std::string to_table(std::vector<std::pair<std::string, outcome>> const& all) {
  std::vector<std::vector<std::string>> rows{{"WORKLOAD", "JOBS", "WAITING", "MEDIAN", "99 %", "COMPLETION",
                                              "MEDIAN", "99 %", "USED", "SERVICES' WAIT", "MEDIAN", "99 %",
                                              "PLANS"}};
  std::vector<double> waited, done, services;
  int plans = 0;
  std::vector<double> used;
  for (auto const& [name, o] : all) {
    rows.push_back(row(name, waits(o), completions(o), use_of(o), o.service_waits, o.plans));
    for (double w : waits(o)) waited.push_back(w);
    for (double c : completions(o)) done.push_back(c);
    services.insert(services.end(), o.service_waits.begin(), o.service_waits.end());
    plans += o.plans;
  }
  if (all.size() > 1) rows.push_back(row("all", waited, done, "", services, plans));
  std::string text = "simulated, not measured: times are those of a model\n";
  if (!all.empty() && !all[0].second.what_if.empty()) text += all[0].second.what_if + "\n";
  text += fmt::format("\n{}", tool::to_table(rows));
  std::vector<std::vector<std::string>> bursts{{"SERVICE", "AT", "PODS", "WAITED"}};
  for (auto const& [name, o] : all)
    if (o.bursts.size() <= 20)
      for (burst_outcome const& b : o.bursts)
        bursts.push_back({b.service, time(b.at), fmt::format("{} to {}", b.from, b.to),
                          b.waited < 0 ? "never all" : time(b.waited)});
  if (bursts.size() > 1) text += fmt::format("\n{}", tool::to_table(bursts));
  return text;
}

json to_json(std::vector<std::pair<std::string, outcome>> const& all) {
  json out = json::array();
  auto const described = [](std::vector<double> const& values) {
    summary const s = summary_of(values);
    return json{{"mean", s.mean}, {"median", s.median}, {"p99", s.p99}, {"count", s.count}};
  };
  for (auto const& [name, o] : all) {
    json one{{"workload", name},
             {"simulated", true},
             {"plans", o.plans},
             {"waiting_s", described(waits(o))},
             {"completion_s", described(completions(o))},
             {"services_wait_s", described(o.service_waits)}};
    if (!o.what_if.empty()) one["what_if"] = o.what_if;
    for (std::size_t r = 0; r < o.resources.size(); ++r) one["used"][o.resources[r]] = o.utilisation[r];
    for (job_outcome const& j : o.jobs)
      one["jobs"].push_back({{"name", j.name},
                             {"submitted", j.submitted},
                             {"started", j.started},
                             {"completed", j.completed},
                             {"resizes", j.resizes}});
    for (burst_outcome const& b : o.bursts)
      one["bursts"].push_back(
          {{"service", b.service}, {"at", b.at}, {"from", b.from}, {"to", b.to}, {"waited", b.waited}});
    out.push_back(std::move(one));
  }
  return out;
}

std::string to_svg(std::string const& title, outcome const& of) {
  std::vector<sample> const& line = of.timeline;
  double const from = line.empty() ? 0 : line.front().at, to = line.empty() ? 0 : line.back().at;
  bool const hours = to - from > 7200;
  auto const drawn = [&](std::string const& name, auto&& value) {
    chart::line l{.name = name, .points = {}, .steps = true};
    for (sample const& s : line) l.points.emplace_back((s.at - from) / (hours ? 3600 : 1), value(s));
    return l;
  };
  chart::panel used{.name = "used, %", .lines = {}, .least = 0, .most = 100},
      jobs{.name = "jobs", .lines = {}, .least = 0};
  for (std::size_t r = 0; r < of.resources.size(); ++r)
    used.lines.push_back(drawn(of.resources[r], [r](sample const& s) { return 100 * s.used[r]; }));
  jobs.lines.push_back(drawn("jobs that run", [](sample const& s) { return double(s.running); }));
  jobs.lines.push_back(drawn("jobs that wait", [](sample const& s) { return double(s.waiting); }));
  return edl::to_svg(
      {.title = fmt::format("{} (simulated{}{})", title, of.what_if.empty() ? "" : "; ", of.what_if),
       .x_name = hours ? "hours" : "seconds",
       .panels = {std::move(used), std::move(jobs)}});
}

}  // namespace edl::simulate
