// SPDX-License-Identifier: Apache-2.0
#include "world/market_history.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>

#include "edl/core/error.hpp"
#include "edl/core/wall_time.hpp"
#include "simulate/spot_policies.hpp"
#include "world/cluster.hpp"
#include "world/counting.hpp"
#include "world/timeline.hpp"

namespace simulation {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
namespace simulate = edl::simulate;

constexpr char prices[] = "/var/prices.json", notice_file[] = "/notice";
constexpr auto notice = 120s;
constexpr int workers = 2;
constexpr double seconds_for_a_record = 2.5;  // about; a killed worker loses those of a minibatch

simulate::spot_case case_of(market_options const& o, simulate::spot_trace const& trace) {
  simulate::spot_case c{.name = "replay", .start = o.from};
  for (std::size_t z = 0; z < trace.zones.size(); ++z)
    if (o.zones.empty() || std::ranges::count(o.zones, trace.zones[z].name)) c.zones.push_back(z);
  c.ticks = int(o.deadline * simulate::hour / trace.tick);
  c.work = o.work * simulate::hour;
  if (c.ticks < 1 || !(c.work > 0) || c.work > o.deadline * simulate::hour)
    throw edl::usage_error("--deadline, --work: expected hours, and no more work than the deadline allows");
  if (c.zones.empty() || (!o.zones.empty() && c.zones.size() != o.zones.size()))
    throw edl::usage_error(o.prefix + ": has not all of the zones that were named");
  if (c.start + std::size_t(c.ticks) > trace.zones[0].up.size())
    throw edl::usage_error(o.prefix + ": the window ends after the trace");
  return c;
}

class replay {
 public:
  replay(market_result& to, timeline& lines, market_options const& o, simulate::spot_trace const& trace,
         simulate::spot_case const& what, json const& definition)
      : to_(to), lines_(lines), options_(o), trace_(trace), case_(what), definition_(definition) {}

  void drive() {
    world::on_line([this](world::line const& l) {
      std::string const name = world::name_of(l.from), text = read_line(l.text).text;
      // A day has too many lines about records.
      static constexpr std::string_view told[] = {"World", "moves to", "notice", "joined", "left", "lost"};
      if (std::ranges::any_of(told, [&](auto what) { return text.find(what) != text.npos; }))
        lines_.say(name, text);
    });
    int const epochs = std::max(1, int(case_.work * workers / seconds_for_a_record / counting::records));
    double const pace = case_.work * workers / (epochs * counting::records);
    counting::in_pass = [pace](int rows) {
      std::this_thread::sleep_for(std::chrono::duration<double>(pace * rows));
    };
    int const zones = int(case_.zones.size());
    cluster_.emplace(world::cluster::options{.nodes = zones + 2, .cpu = "4", .main = counting::main},
                     definition_);
    tick(0);
    world::pid const controller = cluster_->start_controller(
        0, {"--lease_duration=4", "--lease_renew_deadline=3", std::string("--prices=") + prices});
    submit(epochs);
    auto const began = world::now();
    std::string at;
    for (int t = 0; t < 2 * case_.ticks && !over(); ++t) {
      if (t > 0) tick(t);
      auto const next = began + std::chrono::duration_cast<world::duration>(
                                    std::chrono::duration<double>(trace_.tick * (t + 1)));
      bool told = false;
      while (!over() && world::now() < next) {
        if (!std::exchange(told, told || world::now() + notice >= next) && told) give_notices(t + 1);
        std::this_thread::sleep_for(10s);
        json const spot = cluster_->status("j").value("spot", json::object());
        if (std::string now = spot.value("pool", ""); now != at) {
          lines_.say("job", fmt::format("{} after {:.2f} USD: {}", now, spot.value("usd", 0.0),
                                        spot.value("reason", "")));
          to_.moves += now != "none";
          at = std::move(now);
        }
      }
    }
    json const status = cluster_->status("j");
    to_.usd = status.value("/spot/usd"_json_pointer, 0.0);
    to_.hours = std::chrono::duration<double>(world::now() - began).count() / simulate::hour;
    if (cluster_->phase("j") != "succeeded") return find("the job has not succeeded: " + status.dump());
    if (to_.hours > options_.deadline) find("the deadline is missed");
    world::pid const audit = world::start({.name = "audit",
                                           .main = counting::main,
                                           .arguments = {"counting", "audit", "/storage/j/checkpoints"}});
    if (!world::wait_for(audit, 60s) || world::ended(audit)->code != 0)
      find("the audit of the last checkpoint is not exact");
    auto const model = world::read_file("cluster", "/storage/j/model/model.safetensors");
    plan p{.seed = 0};
    p.servers = options_.servers;
    p.how = options_.servers ? strategy::asynchronous : strategy::allreduce;
    p.epochs = epochs;
    if (std::string const wrong = model ? miscounted(p, *model) : "there is no exported model";
        !wrong.empty())
      find(wrong);
    world::kill(controller, SIGTERM);
    world::wait_for(controller, 60s);
  }

 private:
  std::string node_of(int zone) const { return "node-" + std::to_string(zone + 1); }

  void tick(int t) {
    json now = json::object();
    for (int z = 0; z < int(case_.zones.size()); ++z) {
      simulate::spot_zone const& zone = trace_.zones[case_.zones[std::size_t(z)]];
      std::size_t const i = std::min(case_.start + std::size_t(t), zone.up.size() - 1);
      now[zone.name] = zone.price[i] / workers;
      if (!was_.empty() && was_[std::size_t(z)] == zone.up[i]) continue;
      cluster_->set_node(node_of(z), zone.up[i] != 0);
    }
    was_.clear();
    for (std::size_t z : case_.zones)
      was_.push_back(
          trace_.zones[z].up[std::min(case_.start + std::size_t(t), trace_.zones[z].up.size() - 1)]);
    world::write_file("cluster", prices, now.dump());
    for (std::string const& host : std::exchange(noticed_, {})) world::remove_file(host, notice_file);
  }

  /// As AWS does, two minutes before.
  void give_notices(int t) {
    json const list = cluster_->api().get("/api/v1/namespaces/default/pods");
    for (int z = 0; z < int(case_.zones.size()); ++z) {
      simulate::spot_zone const& zone = trace_.zones[case_.zones[std::size_t(z)]];
      if (zone.up[std::min(case_.start + std::size_t(t), zone.up.size() - 1)]) continue;
      for (json const& p : list.at("items"))
        if (p["spec"].value("nodeName", "") == node_of(z))
          world::write_file(noticed_.emplace_back(p["metadata"]["name"]), notice_file, "");
    }
  }

  void submit(int epochs) {
    auto const pool = [](std::string const& node, double usd) {
      return json{{"nodeSelector", {{"pool", node}}}, {"usdPerHour", usd}};
    };
    int const zones = int(case_.zones.size());
    double dear = 1e9;
    json pools = json::array();
    for (int z = 0; z < zones; ++z) {
      simulate::spot_zone const& zone = trace_.zones[case_.zones[std::size_t(z)]];
      dear = std::min(dear, zone.on_demand);
      pools.push_back(pool(node_of(z), zone.price[case_.start] / workers));
      pools.back()["name"] = zone.name;
    }
    world::cluster::training_job j{.name = "j", .min = workers, .max = workers, .servers = options_.servers};
    j.spot = {{"deadline", edl::stamp_of(edl::wall_seconds() + case_.ticks * trace_.tick)},
              {"onDemand", pool(node_of(zones), dear / workers)},
              {"pools", pools}};
    j.flags = {"--training_data=data.counted",
               "--minibatch_size=4",
               "--num_minibatches_per_task=8",
               fmt::format("--num_epochs={}", epochs),
               "--checkpoint_dir=/storage/j/checkpoints",
               "--checkpoint_steps=200",
               "--output=/storage/j/model",
               "--num_threads=1",
               "--device=cpu",
               "--kernels=fixed",
               "--transport_security=none",
               fmt::format("--preemption_notice=file:{}", notice_file)};
    if (options_.servers) j.flags.push_back("--use_async");
    cluster_->submit(j);
  }

  bool over() const {
    std::string const phase = cluster_->phase("j");
    return phase == "succeeded" || phase == "failed";
  }

  void find(std::string what) {
    lines_.say("world", "FOUND: " + what);
    to_.what.findings.push_back(std::move(what));
  }

  market_result& to_;
  timeline& lines_;
  market_options const& options_;
  simulate::spot_trace const& trace_;
  simulate::spot_case const& case_;
  json const& definition_;
  std::optional<world::cluster> cluster_;
  std::vector<char> was_;
  std::vector<std::string> noticed_;  ///< hosts
};

}  // namespace

market_result run_market_history(std::uint64_t seed, market_options const& o, json const& definition,
                                 std::string const& trace) {
  auto const market = simulate::read_spot(o.prefix, 600, o.on_demand, o.lost);
  auto const what = case_of(o, market);
  market_result r{.what = {.job = {.seed = seed}}};
  simulate::spot_rules const rules{.standstill = 3};
  simulate::spot_job job(market, what, rules);
  simulate::edl_policy policy(job);
  auto const simulated = job.run(policy);
  r.simulated = simulated.cost, r.simulated_moves = simulated.moves;
  r.optimum = simulate::spot_optimum(market, what, rules);
  timeline lines;
  auto const result = world::run({.seed = seed,
                                  .limit = std::chrono::hours(int(3 * o.deadline)),
                                  .most_events = 500'000'000,
                                  .trace = trace},
                                 [&] { (new replay(r, lines, o, market, what, definition))->drive(); });
  if (!result.failure.empty()) r.what.findings.push_back("the world: " + result.failure);
  r.what.hash = result.hash, r.what.events = result.events, r.what.virtual_time = result.virtual_time;
  r.what.timeline = lines.text();
  return r;
}

}  // namespace simulation
