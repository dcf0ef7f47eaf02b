// SPDX-License-Identifier: Apache-2.0
// Runs jobs to which something happens all the time, and tells what became of them.
#define DOCTEST_CONFIG_DISABLE
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "chaos/plan.hpp"
#include "chaos/report.hpp"
#include "chaos/trial.hpp"
#include "edl/core/random.hpp"

int main(int argc, char** argv) {
  std::size_t faults = 100;
  std::uint64_t seed = 1, first = 0, jobs = 0;
  std::string strategy = "both", out, logs, program = EDL_TINY;
  bool bare = false, networks = false, hostile = false;
  CLI::App app("Kills, stops and cuts off the processes of jobs, and checks what became of the jobs");
  app.add_option("--faults", faults, "how many in all; the last job is run to its end");
  app.add_option("--seed", seed, "of what is drawn");
  app.add_option("--strategy", strategy, "ps, allreduce or both")
      ->check(CLI::IsMember({"both", "ps", "allreduce"}));
  app.add_option("--first", first, "number of the first job, to repeat one of a longer run");
  app.add_option("--jobs", jobs, "run so many jobs at most; 0: no limit");
  app.add_option("--out", out, "file for the report, as JSON; written after each job");
  app.add_option("--logs", logs,
                 "directory for the logs of jobs that fail, and of the only one with --jobs=1");
  app.add_option("--program", program, "the small model's binary of the tests");
  app.add_flag(
      "--hostile", hostile,
      "also: squatters on dead processes' names, storage that fails, damaged journals, silent newcomers "
      "and masters; root for squatters of another user");
  app.add_flag("--networks", networks, "workers behind networks that are cut; needs root and ip");
  app.add_flag("--bare", bare, "do not compare with undisturbed jobs");
  CLI11_PARSE(app, argc, argv);

  if (!logs.empty()) std::filesystem::create_directories(logs);
  chaos::report all;
  chaos::reference undisturbed;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (std::uint64_t i = first; all.faults() < faults && (jobs == 0 || i < first + jobs); ++i) {
    bool const allreduce = strategy == "allreduce" || (strategy == "both" && i % 2 == 1);
    auto const p = chaos::draw_plan(edl::mix(seed, i),
                                    {.allreduce = allreduce, .hostile = hostile, .by_hand = networks});
    chaos::outcome const o = chaos::trial(p, bare ? nullptr : &undisturbed, program).run();
    all.add(i, p, o);
    std::printf("job %llu (%s): %zu faults in %.1f s, accuracy %.3f, %s; %zu faults in all\n",
                static_cast<unsigned long long>(i), p.configuration().c_str(), o.faults.size(), o.seconds,
                o.accuracy, o.failures.empty() ? "good" : "FAILED", all.faults());
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
