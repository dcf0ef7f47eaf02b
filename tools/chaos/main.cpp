// SPDX-License-Identifier: Apache-2.0
// Runs jobs to which something happens all the time, and tells what became of them.
#define DOCTEST_CONFIG_DISABLE
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "chaos/plan.hpp"
#include "chaos/report.hpp"
#include "chaos/trial.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace {

using edl::cli::flag;

std::vector<flag> flags() {
  using enum flag::value_type;
  return {
      {.name = "faults",
       .fallback = "100",
       .help = "how many in all; the last job is run to its end",
       .type = whole,
       .least = 0},
      {.name = "seed", .fallback = "1", .help = "of what is drawn", .type = whole, .least = 0},
      {.name = "strategy", .fallback = "both", .help = "of the jobs", .choices = {"both", "ps", "allreduce"}},
      {.name = "first",
       .fallback = "0",
       .help = "number of the first job, to repeat one of a longer run",
       .type = whole,
       .least = 0},
      {.name = "jobs",
       .fallback = "0",
       .help = "run so many jobs at most; 0: no limit",
       .type = whole,
       .least = 0},
      {.name = "out", .help = "file for the report, as JSON; written after each job"},
      {.name = "logs", .help = "directory for the logs of jobs that fail, and of the only one with --jobs=1"},
      {.name = "program", .fallback = EDL_TINY, .help = "the small model's binary of the tests"},
      {.name = "hostile",
       .help = "also: squatters on dead processes' names, storage that fails, damaged journals, silent "
               "newcomers and masters; root for squatters of another user",
       .type = truth},
      {.name = "tables",
       .help = "of the small model that is rows of tables, which come and go",
       .type = truth},
      {.name = "best",
       .help =
           "of a best version, an early end and a moving average: all-reduce in a fixed order, kills alone",
       .type = truth},
      {.name = "relays",
       .help = "workers behind relays that lose replies of the master and alter TLS records",
       .type = truth},
      {.name = "signals",
       .help = "also: signals to all of a job, and to its command just started, which is given again",
       .type = truth},
      {.name = "networks", .help = "workers behind networks that are cut; needs root and ip", .type = truth},
      {.name = "bare", .help = "do not compare with undisturbed jobs", .type = truth}};
}

int run(edl::cli::command_line const& l) {
  auto const number = [&](char const* name) { return edl::cli::parse_number<std::uint64_t>(l.text(name)); };
  std::uint64_t const faults = number("faults"), seed = number("seed"), first = number("first"),
                      jobs = number("jobs");
  std::string const strategy = l.text("strategy"), out = l.text("out"), logs = l.text("logs"),
                    program = l.text("program");
  bool const bare = l.truth("bare"), networks = l.truth("networks"), hostile = l.truth("hostile"),
             best = l.truth("best"), relays = l.truth("relays"), signals = l.truth("signals");
  if ((relays || networks) && (signals || (relays && (hostile || networks))))
    throw edl::usage_error(
        "--relays and --networks are of roles by hand: give one, without --signals, and --relays without "
        "--hostile");
  if (best && (hostile || networks || relays || signals || l.truth("tables") || strategy == "ps"))
    throw edl::usage_error(
        "--best is of all-reduce jobs and kills alone: give it without --hostile, --networks, "
        "--relays, --signals, --tables and --strategy=ps");
  if (l.truth("tables")) ::setenv("TINY_TABLES", "1", 1);  // for the programs that are started
  if (!logs.empty()) std::filesystem::create_directories(logs);
  chaos::report all;
  chaos::reference undisturbed;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (std::uint64_t i = first; all.faults() < faults && (jobs == 0 || i < first + jobs); ++i) {
    bool const allreduce = best || strategy == "allreduce" || (strategy == "both" && i % 2 == 1);
    auto const p = chaos::draw_plan(edl::mix(seed, i), {.allreduce = allreduce,
                                                        .hostile = hostile,
                                                        .by_hand = networks || relays,
                                                        .proxied = relays,
                                                        .signals = signals,
                                                        .judged = best});
    chaos::outcome const o = chaos::trial(p, bare ? nullptr : &undisturbed, program).run();
    all.add(i, p, o);
    std::printf("job %llu (%s): %zu faults in %.1f s, accuracy %.3f, %s; %zu faults in all\n",
                static_cast<unsigned long long>(i), p.configuration().c_str(), o.faults.size(), o.seconds,
                o.accuracy, o.failures.empty() ? "good" : "FAILED", all.faults());
    if (!o.best.empty()) std::printf("  best: %s\n", o.best.c_str());
    for (std::string const& why : o.failures) std::printf("  %s\n", why.c_str());
    std::fflush(stdout);
    if (!logs.empty() && (!o.failures.empty() || jobs == 1)) {
      std::ofstream log(logs + "/job-" + std::to_string(i) + ".log");
      log << o.log;
      for (chaos::fault const& f : o.faults) {
        log << "fault " << f.at.time_since_epoch() / chaos::milliseconds(1) << ' ' << name(f.what)
            << (f.in_recovery ? " *" : "") << ':';
        for (std::string const& v : f.victims) log << ' ' << v;
        log << '\n';
      }
    }
    if (!out.empty()) {
      auto j = all.json();
      j["seed"] = seed;
      j["first"] = first;
      j["strategy"] = strategy;
      std::ofstream(out) << j.dump(1) << '\n';
    }
  }
  all.print(stdout);
  return all.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program(
      {.command = "edl-chaos", .flags = flags()},
      "Kills, stops and cuts off the processes of jobs, and checks the outcome of the jobs.",
      {argv + 1, argv + argc}, run);
}
