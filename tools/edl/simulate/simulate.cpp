// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/table.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "simulate/report.hpp"
#include "simulate/workloads.hpp"

namespace edl::tool {
namespace {

double real(command_line const& l, std::string const& name, double least, double most) {
  std::string const& t = l.text(name);
  auto const value = number_from<double>(t);
  if (!value || !(*value >= least && *value <= most))
    throw usage_error(fmt::format("--{}: expected a number from {:g} to {:g}, not '{}'", name, least, most,
                                  printable(t, 40)));
  return *value;
}

simulate::scenario read(command_line const& l, std::string const& path) {
  std::string const format = l.text("format") == "auto" ? simulate::format_of(path) : l.text("format");
  if (format == "yaml") return simulate::read_scenario(path);
  if (format == "pollux") {
    if (l.text("applications").empty())
      throw usage_error(
          path + ": a workload in the Pollux format needs --applications, the directory of the measurements");
    return simulate::read_pollux(
        path, l.text("applications"),
        l.text("batch") == "changing" ? simulate::batch::changing : simulate::batch::fixed);
  }
  auto s = simulate::read_philly(path, std::size_t(l.number("first_jobs")));
  s.nodes = simulate::alike(int(l.number("nodes")), "node", {{"nvidia.com/gpu", "8"}});
  return s;
}

}  // namespace

std::vector<flag> simulate_flags() {
  std::vector<flag> all{
      {.name = "cluster", .help = "YAML file with the nodes, in place of the workload's own"},
      {.name = "format",
       .fallback = "auto",
       .help = "of the workload files",
       .choices = {"auto", "yaml", "pollux", "philly"}},
      {.name = "applications",
       .help = "directory with a folder of measurements for each application (Pollux format)"},
      {.name = "batch",
       .fallback = "fixed",
       .help = "whether jobs keep their global batch (Pollux format)",
       .choices = {"fixed", "changing"}},
      {.name = "first_jobs",
       .fallback = "1000",
       .help = "read so many jobs, the earliest (Philly format)",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 1000000},
      {.name = "generate",
       .help = "draw a workload of so many jobs instead of reading one",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 100000},
      {.name = "nodes",
       .fallback = "16",
       .help = "of 8 GPUs, for drawn workloads and the Philly format",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 100000},
      {.name = "seed",
       .fallback = "1",
       .help = "of the drawn workload",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 2147483647},
      {.name = "policy", .fallback = "fair", .help = "which jobs get the rest once each job has its min"},
      {.name = "fixed",
       .fallback = "false",
       .help = "give each job its max or nothing, for comparison with elasticity",
       .type = flag::value_type::truth},
      {.name = "max_load",
       .fallback = "0.97",
       .help = "part of cpu and memory that jobs may fill; the rest is for services"},
      {.name = "standstill",
       .fallback = "1",
       .help = "seconds that training stands still when a job's size changes"},
      {.name = "decide_every", .fallback = "60", .help = "seconds between plans"},
      {.name = "at_events",
       .fallback = "true",
       .help = "plan also when something happens, once a second at most",
       .type = flag::value_type::truth},
      {.name = "scheduler",
       .fallback = "spread",
       .help = "put pods where most is free, as Kubernetes does by default, or where least is",
       .choices = {"spread", "pack"}},
      {.name = "move",
       .fallback = "false",
       .help = "what if the controller chose the nodes of workers, and moved them; it does not",
       .type = flag::value_type::truth},
      {.name = "pod_start", .fallback = "0", .help = "seconds that a pod takes to be ready"},
      {.name = "pod_stop", .fallback = "0", .help = "seconds that a pod which leaves holds its room"},
      {.name = "svg", .help = "write a plot of one workload into this file"},
      output_flag()};
  for (flag& f : all)
    if (f.name == "policy")
      for (autoscaler::policy const& p : autoscaler::policies()) f.choices.push_back(p.name);
  return all;
}

int simulate(words const& line) {
  command_line const l("simulate", simulate_flags(), line, 0, 1000, "workload files");
  std::vector<std::pair<std::string, simulate::scenario>> what;
  if (!l.text("generate").empty()) {
    int const jobs = int(l.number("generate")), nodes = int(l.number("nodes"));
    what.emplace_back(fmt::format("{} on {}", counted(jobs, "job"), counted(nodes, "node")),
                      simulate::generated(nodes, jobs, unsigned(l.number("seed"))));
  }
  for (std::string const& path : l.arguments()) what.emplace_back(path, read(l, path));
  if (what.empty()) throw usage_error("simulate: name a workload file, or --generate=JOBS");
  if (!l.text("svg").empty() && what.size() > 1) throw usage_error("--svg plots one workload: name one file");
  simulate::rules by;
  by.plan.who = autoscaler::policy_called(l.text("policy"));
  by.plan.max_load = real(l, "max_load", 0.01, 1);
  by.standstill = real(l, "standstill", 0, 1e6);
  by.decide_every = real(l, "decide_every", 0.1, 1e6);
  by.decide_at_events = l.truth("at_events");
  by.plan.move = l.truth("move");
  by.scheduler = l.text("scheduler") == "pack" ? simulate::placing::pack : simulate::placing::spread;
  by.pod_start = real(l, "pod_start", 0, 1e6);
  by.pod_stop = real(l, "pod_stop", 0, 1e6);
  std::vector<std::pair<std::string, simulate::outcome>> out;
  for (auto& [name, s] : what) {
    if (!l.text("cluster").empty()) s.nodes = simulate::read_cluster(l.text("cluster"));
    if (l.truth("fixed"))
      for (simulate::job_spec& j : s.jobs) j.min = j.max;
    out.emplace_back(name, simulate::simulate(s, by));
  }
  if (!l.text("svg").empty()) replace_file(l.text("svg"), simulate::to_svg(out[0].first, out[0].second));
  std::string const how = l.text("output");
  fmt::print("{}", how == "table" ? simulate::to_table(out) : to_text(simulate::to_json(out), how));
  return done;
}

}  // namespace edl::tool
