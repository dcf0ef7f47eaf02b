// SPDX-License-Identifier: Apache-2.0
// edl-world: whole jobs of edl in a simulated operating system. One seed is one history (docs/simulation.md).
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>

#include "edl/cli/command_line.hpp"
#include "world/campaign.hpp"
#include "world/cluster.hpp"
#include "world/market_history.hpp"
#include "world/program.hpp"

namespace {

constexpr char const* help =
    "edl-world [--seed=N] [--seconds=S] [--faults=LIST] [FLAG]…\n"
    "  --seed=N      the history to run, or the first of a campaign; new: of the time, which is printed\n"
    "  --seconds=S   seed after seed for so long; without it one history\n"
    "  --processor=S the same, for so many seconds of a processor\n"
    "  --faults=LIST what happens, instead of what the seed draws; as a failing history prints it\n"
    "  --replay=FILE the histories of a list: a seed in each line, or a seed, a blank and its faults\n"
    "  --jobs=N      histories side by side (2)\n"
    "  --limit=S     seconds of a processor that a history may take (60)\n"
    "  --stop        a campaign ends with its first failure\n"
    "  --keep        failing histories keep all of their faults\n"
    "  --cluster     histories of TrainingJobs, with controllers and the double of the API server\n"
    "  --market=PREFIX  one job that follows a trace of spot markets (edl simulate --trace), beside its "
    "simulation;\n"
    "     with --on_demand=, --ones=preempted as there, --zones=A,B, --from=TICK, --deadline=HOURS, "
    "--work=HOURS,\n"
    "     and --servers for a job with a server\n"
    "  --trace=FILE  a line for each event of a single history\n"
    "  --print       the time line of a single history, also of one that does not fail\n";

int replay_market(simulation::campaign_options const& o, simulation::market_options const& market,
                  bool shows) {
  auto const r = simulation::run_market_history(
      o.first, market, world::read_definition(EDL_MANIFESTS "/trainingjob-crd.yaml"), o.trace);
  for (std::string const& f : r.what.findings) fmt::print("FAILED: {}\n", f);
  if (shows || !r.what.findings.empty()) fmt::print("{}\n", r.what.timeline);
  fmt::print(
      "the job: {:.2f} USD in {:.1f} of {:g} hours, {} pools one after the other; simulated: {:.2f} USD, "
      "{} starts; ratio {:.4f}; the least possible: {:.2f} USD; {} events\n",
      r.usd, r.hours, market.deadline, r.moves, r.simulated, r.simulated_moves, r.usd / r.simulated,
      r.optimum, r.what.events);
  return r.what.findings.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  world::prepare(argc, argv);
  simulation::campaign_options o;
  bool shows = false;
  std::string list;
  simulation::market_options market;
  for (int i = 1; i < argc; ++i) {
    std::string_view const flag = argv[i];
    auto const value = [&](std::string_view name) -> char const* {
      return flag.starts_with(name) ? argv[i] + name.size() : nullptr;
    };
    if (flag == "--seed=new")
      o.first = std::uint64_t(std::time(nullptr)) * 1000;
    else if (char const* v = value("--seed="))
      o.first = std::strtoull(v, nullptr, 10);
    else if (char const* v = value("--replay="))
      list = v;
    else if (char const* v = value("--seconds="))
      o.time = std::chrono::seconds(std::atoi(v));
    else if (char const* v = value("--processor="))
      o.processor = std::chrono::seconds(std::atoi(v));
    else if (char const* v = value("--faults="))
      o.faults = simulation::parse_faults(v);
    else if (char const* v = value("--jobs="))
      o.jobs = std::max(1, std::atoi(v));
    else if (char const* v = value("--limit="))
      o.limit = std::chrono::seconds(std::atoi(v));
    else if (char const* v = value("--trace="))
      o.trace = v;
    else if (flag == "--cluster")
      o.cluster = true, o.shrink = false;
    else if (char const* v = value("--market="))
      market.prefix = v;
    else if (char const* v = value("--on_demand="))
      market.on_demand = v;
    else if (flag == "--ones=preempted")
      market.lost = true;
    else if (char const* v = value("--zones="))
      market.zones = edl::cli::split(v, ',');
    else if (char const* v = value("--from="))
      market.from = std::strtoull(v, nullptr, 10);
    else if (char const* v = value("--deadline="))
      market.deadline = std::atof(v);
    else if (char const* v = value("--work="))
      market.work = std::atof(v);
    else if (flag == "--servers")
      market.servers = true;
    else if (flag == "--stop")
      o.stop_at_first = true;
    else if (flag == "--keep")
      o.shrink = false;
    else if (flag == "--print")
      shows = true;
    else {
      fmt::print(stderr, "{}", help);
      return flag == "--help" ? 0 : 2;
    }
  }
  if (!market.prefix.empty()) return replay_market(o, market, shows);
  if (!list.empty()) return simulation::replay(list, o) == 0 ? 0 : 1;
  if (!shows) return simulation::run_campaign(o) == 0 ? 0 : 1;
  auto const one = simulation::run_child(o.first, o.faults, o);
  simulation::print(one);
  fmt::print("{} events, {} steps, hash {:016x}, {:.1f} s virtual, {:.2f} s of a processor\n", one.events,
             one.steps, one.hash, one.virtual_seconds, one.seconds);
  return one.findings.empty() ? 0 : 1;
} catch (std::exception const& e) {
  fmt::print(stderr, "edl-world: {}\n", e.what());
  return 2;
}
