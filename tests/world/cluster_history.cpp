// SPDX-License-Identifier: Apache-2.0
#include "world/cluster_history.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "edl/core/wall_time.hpp"
#include "world/cluster.hpp"
#include "world/counting.hpp"
#include "world/plan.hpp"
#include "world/timeline.hpp"

namespace simulation {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// From the quiet on: what is lost is found to be so, pods are placed again, and the rest is trained.
constexpr auto recovery = 20min;

constexpr char prices[] = "/var/prices.json";

class cluster_checks {
 public:
  cluster_checks(history& h, timeline& lines, json const& definition)
      : h_(h),
        lines_(lines),
        draws_(h.job.seed, 77),
        market_(draws_.one_in(3)),
        nodes_(market_ ? 3 : int(draws_.between(2, 3))),
        definition_(definition) {}

  void drive() {
    world::on_line([this](world::line const& l) { lines_.hear(world::name_of(l.from), read_line(l.text)); });
    world::on_end([this](world::pid p, world::ending const& e) {
      lines_.say(world::name_of(p), e.signal ? fmt::format("killed by signal {}", e.signal)
                                             : fmt::format("ended with {}", e.code));
    });
    counting::in_pass = [](int rows) { std::this_thread::sleep_for(40ms * rows); };
    cluster_.emplace(
        world::cluster::options{.nodes = nodes_, .cpu = market_ ? "8" : "4", .main = counting::main},
        definition_);
    world::write_file("cluster", prices, "{}");
    for (int i = 0; i < 2; ++i) controllers_[i] = start_controller(i);
    std::uint64_t const count = 1 + draws_.below(3);
    for (std::uint64_t i = 0; i < count; ++i) submit("j" + std::to_string(i));
    auto const quiet = world::now() + std::chrono::seconds(draws_.between(10, 120));
    while (!over() && world::now() < quiet) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(draws_.between(50, draws_.one_in(3) ? 3000 : 500)));
      tend();
      disturb();
    }
    calm();
    auto const until = world::now() + recovery;
    while (!over() && world::now() < until) {
      std::this_thread::sleep_for(1s);
      tend();
    }
    for (plan const& p : jobs_) judge(p);
    leave();
  }

 private:
  static std::string name_of(plan const& p) { return "j" + std::to_string(p.seed); }

  world::pid start_controller(int number) {
    return cluster_->start_controller(number, {"--lease_duration=4", "--lease_renew_deadline=3",
                                               "--lease_retry=0.2", std::string("--prices=") + prices});
  }

  void submit(std::string const& name) {
    plan p{.seed = jobs_.size()};
    p.servers = draws_.one_in(3) ? 0 : int(draws_.between(1, 2));
    p.how = p.servers ? strategy::asynchronous : strategy::allreduce;
    p.epochs = int(draws_.between(2, 6));
    int const most = int(draws_.between(1, 4));
    std::string const dir = "/storage/" + name;
    world::cluster::training_job j{.name = name, .min = 1, .max = most, .servers = p.servers};
    j.flags = {"--training_data=data.counted",
               "--minibatch_size=4",
               "--num_minibatches_per_task=4",
               fmt::format("--num_epochs={}", p.epochs),
               "--checkpoint_dir=" + dir + "/checkpoints",
               fmt::format("--checkpoint_steps={}", draws_.between(4, 40)),
               "--output=" + dir + "/model",
               "--num_threads=1",
               "--device=cpu",
               "--kernels=fixed",
               fmt::format("--transport_security={}", draws_.one_in(4) ? "tls" : "none")};
    if (p.servers) j.flags.insert(j.flags.end(), {"--use_async", "--ps_ranges=4"});
    if (market_) {
      auto const pool = [](char const* node, double usd) {
        return json{{"nodeSelector", {{"pool", node}}}, {"usdPerHour", usd}};
      };
      json one = pool("node-1", 1), other = pool("node-2", 1.2);
      one["name"] = "node-1", other["name"] = "node-2";
      j.spot = {{"deadline", edl::stamp_of(edl::wall_seconds() + double(draws_.between(600, 7200)))},
                {"onDemand", pool("node-0", 4)},
                {"pools", json::array({std::move(one), std::move(other)})}};
    }
    cluster_->submit(j);
    lines_.say("user",
               fmt::format("{}: {} epochs, {} servers, up to {} workers", name, p.epochs, p.servers, most));
    jobs_.push_back(p);
  }

  bool over() const {
    return std::ranges::all_of(jobs_, [&](plan const& p) {
      std::string const phase = cluster_->phase(name_of(p));
      return phase == "succeeded" || phase == "failed";
    });
  }

  /// What a deployment and a cloud do.
  void tend() {
    for (std::string const& node : std::exchange(back_, {})) cluster_->set_node(node, true);
    for (int i = 0; i < 2; ++i)
      if (world::ended(controllers_[i])) controllers_[i] = start_controller(i);
  }

  world::duration later(int from, int to) {
    return world::now() + std::chrono::milliseconds(draws_.between(from, to));
  }

  void disturb() {
    auto all = world::processes();
    std::erase(all, cluster_->server());
    world::pid const who = all[std::size_t(draws_.below(all.size()))],
                     other = all[std::size_t(draws_.below(all.size()))];
    std::string const name = world::name_of(who), a = world::host_of(who),
                      b = draws_.one_in(2) ? "cluster" : world::host_of(other);
    auto const say = [&](std::string what) { lines_.say("world", std::move(what)); };
    auto& api = cluster_->api();
    ++h_.met;
    switch (market_ && draws_.one_in(3) ? draws_.between(14, 15) : draws_.below(14)) {
      case 0:
      case 1:
        say("kill " + name);
        return world::kill(who, SIGKILL);
      case 2: {
        say("stop " + name);
        world::kill(who, SIGSTOP);
        return world::at(later(100, 20'000), [who] { world::kill(who, SIGCONT); });
      }
      case 3:
      case 4: {
        if (a == b) return;
        say("cut " + a + " " + b);
        world::cut(a, b);
        return world::at(later(100, 40'000), [a, b] { world::heal(a, b); });
      }
      case 5:
        say("reset " + a + " " + b);
        return a == b ? void() : world::reset_connections(a, b);
      case 6:
        say("the API server fails");
        return api.fail_next(int(draws_.between(1, 20)), draws_.one_in(2) ? 500 : 429, int(draws_.below(3)));
      case 7:
        say("watches are expired");
        return api.expire_watches();
      case 8:
        say("watches end");
        return api.end_watches();
      case 9: {
        say("the API server hangs");
        api.hang(true);
        std::this_thread::sleep_for(std::chrono::milliseconds(draws_.between(100, 15'000)));
        return api.hang(false);
      }
      case 10:
        return remove_pod();
      case 11:
        wish("workers", {{"workers", {{"replicas", draws_.between(1, 4)}}}});
        return;
      case 12: {
        std::string const job = wish("asleep", {{"suspend", true}});
        return world::at(later(1'000, 30'000), [this, job] { asleep_.push_back(job); });
      }
      case 14: {
        json now = json::object();
        for (char const* pool : {"node-1", "node-2", "on-demand"})
          if (!draws_.one_in(3)) now[pool] = double(draws_.between(0, 50)) / 10;
        say("prices " + now.dump());
        return world::write_file("cluster", prices, draws_.one_in(8) ? "{\"node-1\":" : now.dump());
      }
      case 15: {
        std::string const node = "node-" + std::to_string(draws_.between(1, nodes_ - 1));
        say("no machines in " + node);
        cluster_->set_node(node, false);
        return world::at(later(1'000, 200'000), [this, node] { back_.push_back(node); });
      }
      default: {
        world::disk d;
        if (draws_.one_in(3))
          d.capacity = world::disk_used("storage");
        else if (draws_.one_in(2))
          d.io_error = 0.3;
        else
          d.fsync = 3s;
        say("the storage is in trouble");
        world::set_disk("storage", d);
        return world::at(later(100, 20'000), [] { world::set_disk("storage", {}); });
      }
    }
  }

  void remove_pod() {
    auto const pods = cluster_->pods();
    if (pods.empty()) return;
    auto const it = std::next(pods.begin(), std::ptrdiff_t(draws_.below(pods.size())));
    if (it->second == "Succeeded") return;  // a user's own fault
    lines_.say("user", "delete pod " + it->first);
    cluster_->api().call("DELETE", "/api/v1/namespaces/default/pods/" + it->first,
                         draws_.one_in(2) ? json{{"gracePeriodSeconds", 0}} : json::object());
  }

  std::string wish(char const* what, json const& spec) {
    std::string const name = name_of(jobs_[std::size_t(draws_.below(jobs_.size()))]);
    lines_.say("user", fmt::format("{} {}: {}", name, what, spec.dump()));
    cluster_->api().call("PATCH", world::cluster::path_of(name), {{"spec", spec}});
    wake();
    return name;
  }

  void wake() {
    for (std::string const& name : std::exchange(asleep_, {})) {
      lines_.say("user", name + " goes on");
      cluster_->api().call("PATCH", world::cluster::path_of(name), {{"spec", {{"suspend", false}}}});
    }
  }

  void calm() {
    std::this_thread::sleep_for(45s);  // the last fault is over
    world::write_file("cluster", prices, R"({"node-1": 1, "node-2": 1})");
    for (int i = 1; i < nodes_; ++i) cluster_->set_node("node-" + std::to_string(i), true);
    asleep_.clear();
    for (plan const& p : jobs_) asleep_.push_back(name_of(p));
    wake();
    lines_.say("world", "quiet");
  }

  void judge(plan const& p) {
    std::string const name = name_of(p), dir = "/storage/" + name;
    if (std::string const phase = cluster_->phase(name); phase != "succeeded") {
      find(fmt::format("{} is {} when it should have succeeded: {}", name, phase,
                       cluster_->status(name).dump()));
      return;
    }
    world::pid const audit = world::start(
        {.name = "audit", .main = counting::main, .arguments = {"counting", "audit", dir + "/checkpoints"}});
    if (!world::wait_for(audit, 60s) || world::ended(audit)->code != 0)
      find(name + ": the audit of the last checkpoint is not exact");
    auto const model = world::read_file("cluster", dir + "/model/model.safetensors");
    if (!model) return find(name + ": there is no exported model");
    if (std::string const wrong = miscounted(p, *model); !wrong.empty()) find(name + ": " + wrong);
  }

  void leave() {
    auto const until = world::now() + 60s;
    auto const others = [&] {
      std::vector<std::string> names;
      for (world::pid p : world::processes())
        if (p != cluster_->server() && p != controllers_[0] && p != controllers_[1])
          names.push_back(world::name_of(p));
      return names;
    };
    while (!others().empty() && world::now() < until) std::this_thread::sleep_for(1s);
    for (std::string const& name : others()) find(name + " has not ended with its job");
  }

  void find(std::string what) {
    lines_.say("world", "FOUND: " + what);
    h_.findings.push_back(std::move(what));
  }

  history& h_;
  timeline& lines_;
  draws draws_;
  bool market_;  ///< jobs follow prices from node to node
  int nodes_;
  json const& definition_;
  std::optional<world::cluster> cluster_;
  world::pid controllers_[2] = {};
  std::vector<plan> jobs_;
  std::vector<std::string> asleep_, back_;
};

}  // namespace

history run_cluster_history(std::uint64_t seed, json const& definition, std::string const& trace) {
  history h{.job = {.seed = seed}};
  timeline lines;
  auto const result = world::run({.seed = seed, .limit = 4h, .most_events = 50'000'000, .trace = trace},
                                 [&] { (new cluster_checks(h, lines, definition))->drive(); });
  if (!result.failure.empty()) h.findings.push_back("the world: " + result.failure);
  h.hash = result.hash, h.events = result.events, h.virtual_time = result.virtual_time;
  h.timeline = lines.text();
  h.paths = lines.paths();
  return h;
}

}  // namespace simulation
