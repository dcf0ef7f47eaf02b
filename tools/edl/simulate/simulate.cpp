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
#include "simulate/spot.hpp"
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

int spot(command_line const& l) {
  simulate::spot_trace const trace = simulate::read_spot(l.text("trace"), real(l, "tick", 1, 86400),
                                                         l.text("on_demand"), l.text("ones") == "preempted");
  simulate::spot_rules const slow{.standstill = real(l, "restart", 0, 86400),
                                  .egress = real(l, "egress", 0, 1e3)};
  simulate::spot_rules quick = slow;
  quick.standstill = real(l, "standstill", 0, 86400);
  std::vector<std::string> const links = cli::split(l.text("links"), ',');
  double* const to[] = {&quick.same_region, &quick.same_continent, &quick.else_};
  if (links.size() != 3) throw usage_error("--links: expected three numbers of Gbit/s, as in 9.7,8.2,3.6");
  for (std::size_t i = 0; i < 3; ++i) {
    auto const gbit = number_from<double>(links[i]);
    if (!gbit || !(*gbit >= 1e-3 && *gbit <= 1e5))
      throw usage_error(
          fmt::format("--links: '{}' is no number of Gbit/s from 0.001 to 100000", printable(links[i], 40)));
    *to[i] = *gbit;
  }
  std::vector<simulate::spot_case> cases;
  for (std::string const& path : l.arguments())
    for (simulate::spot_case& c : simulate::read_published(path, trace)) cases.push_back(std::move(c));
  if (l.arguments().empty()) {
    simulate::spot_case c{.name = "all zones", .work = real(l, "work", 0.01, 1e5) * 3600};
    for (std::size_t z = 0; z < trace.zones.size(); ++z) c.zones.push_back(z);
    c.gigabytes = real(l, "gigabytes", 0, 1e7);
    c.ticks = int(real(l, "deadline", 0.01, 1e5) * 3600 / trace.tick);
    if (c.ticks < 1)
      throw usage_error(fmt::format("--deadline={}: is shorter than a tick of the trace, {} s",
                                    l.text("deadline"), trace.tick));
    for (; c.start + std::size_t(c.ticks) <= trace.zones[0].up.size(); c.start += std::size_t(c.ticks))
      cases.push_back(c);
  }
  std::erase_if(cases, [&](simulate::spot_case const& c) {
    double const carried = c.gigabytes * 8 / quick.same_region;
    return c.work + std::max(slow.standstill, quick.standstill + carried) > c.ticks * trace.tick;
  });
  if (cases.empty())
    throw usage_error(
        "--trace: no window: it is shorter than the deadline, or not even machines on demand could meet "
        "that");
  for (simulate::spot_case const& c : cases)
    if (c.ticks > 10000)
      throw usage_error(fmt::format("--trace: a deadline of {} ticks, but 10000 are the most", c.ticks));
  auto const rows = simulate::compare_spot(trace, cases, slow, quick);
  std::string const how = l.text("output");
  fmt::print("{}",
             how == "table" ? simulate::to_table(cases, rows) : to_text(simulate::to_json(cases, rows), how));
  return done;
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
      {.name = "trace",
       .help = "simulate a spot market instead: of PREFIX-available.csv and PREFIX-prices.csv"},
      {.name = "ones",
       .fallback = "available",
       .help = "what 1 stands for in that trace",
       .choices = {"available", "preempted"}},
      {.name = "tick", .fallback = "600", .help = "seconds between lines of a trace that only numbers them"},
      {.name = "on_demand",
       .fallback = "82.844",
       .help =
           "USD per hour of machines on demand: of all zones, then of those that begin so (82.5,eu=90.9)"},
      {.name = "work", .fallback = "40", .help = "hours of training on a spot market"},
      {.name = "deadline", .fallback = "48", .help = "hours until it has to be done"},
      {.name = "gigabytes", .fallback = "50", .help = "of its state, which moves with it"},
      {.name = "restart",
       .fallback = "720",
       .help = "seconds of a start or move of the published strategies"},
      {.name = "links",
       .fallback = "9.72,8.20,3.59",
       .help = "Gbit/s that carry the state within a region, a continent, and beyond, when edl moves"},
      {.name = "egress", .fallback = "0.02", .help = "USD for a GB of the state that leaves its region"},
      {.name = "svg", .help = "write a plot of one workload into this file"},
      output_flag()};
  for (flag& f : all)
    if (f.name == "policy")
      for (autoscaler::policy const& p : autoscaler::policies()) f.choices.push_back(p.name);
  return all;
}

int simulate(words const& line) {
  command_line const l("simulate", simulate_flags(), line, 0, 1000, "workload files");
  if (!l.text("trace").empty()) return spot(l);
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
