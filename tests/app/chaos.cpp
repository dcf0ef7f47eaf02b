// SPDX-License-Identifier: Apache-2.0
// A few jobs to which happens what `edl-world` cannot express. Long runs: tools/chaos.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "chaos/network.hpp"
#include "chaos/plan.hpp"
#include "chaos/trial.hpp"
#include "edl/base/checkpoint/directory.hpp"

namespace chaos_test {

using namespace std::chrono_literals;

TEST_CASE("neighbours, storage that fails and damaged journals cost a job nothing") {
  struct drawn {
    bool allreduce;
    std::uint64_t seed;
  };
  for (drawn const d : {drawn{false, 3}, {true, 5}}) {
    auto const p = chaos::draw_plan(d.seed, {.allreduce = d.allreduce,
                                             .min_faults = 6,
                                             .max_faults = 8,
                                             .epochs_per_worker = 8,
                                             .hostile = true,
                                             .long_silences = false});
    chaos::outcome const o = chaos::trial(p, nullptr).run();
    MESSAGE("seed " << d.seed << ", " << p.configuration() << ": " << o.faults.size() << " faults in "
                    << o.seconds << " s");
    CAPTURE(o.log);
    for (std::string const& why : o.failures) FAIL_CHECK(why);
    CHECK_FALSE(o.faults.empty());
  }
}

TEST_CASE("lost replies, altered records, and signals to all of a job or to its start cost it nothing") {
  // Servers behind relays, and all-reduce by one command.
  for (bool const relays : {true, false}) {
    std::uint64_t seed = 1;
    chaos::plan p;
    do
      p = chaos::draw_plan(seed++, {.allreduce = !relays,
                                    .min_faults = 5,
                                    .max_faults = 6,
                                    .epochs_per_worker = 4,
                                    .by_hand = relays,
                                    .proxied = relays,
                                    .signals = !relays,
                                    .long_silences = false});
    while (p.plain);
    chaos::outcome const o = chaos::trial(p, nullptr).run();
    MESSAGE("seed " << p.seed << ", " << p.configuration() << ": " << o.faults.size() << " faults in "
                    << o.seconds << " s");
    CAPTURE(o.log);
    for (std::string const& why : o.failures) FAIL_CHECK(why);
    CHECK_FALSE(o.faults.empty());
  }
}

// The node of the master, of a server and of a worker is cut off, trains on, writes checkpoints to the
// storage of both, and is lost. A master without its journal then finds the other server, which is behind
// these checkpoints.
TEST_CASE("after a partition a job goes on from its newest checkpoint, not from a server that is behind it") {
  std::optional<chaos::network> wire;
  try {
    wire.emplace(2);
  } catch (std::runtime_error const& e) {
    MESSAGE("skipped: " << e.what());
    return;
  }
  job::scratch const dir;
  auto const start = [&](int node, std::string const& role, job::environment more, std::string const& port) {
    auto line = job::train({"--num_epochs=24", "--num_workers=3", "--num_ps_pods=2", "--ps_replicas=2",
                            "--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=20",
                            "--keep_checkpoint_max=3", "--output=" + dir / "model", "--num_threads=1",
                            "--job_name=chaos", "--port=" + port});
    auto before = wire->inside(node);
    job::options o{.env = {{"TINY_DELAY_US", "500"},
                           {"EDL_ROLE", role},
                           {"EDL_JOB_NAME", "chaos"},
                           {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"},
                           {"MY_POD_IP", wire->address(node)}},
                   .program = before.front()};
    o.env.insert(o.env.end(), more.begin(), more.end());
    before.erase(before.begin());
    before.emplace_back(EDL_TINY);
    line.insert(line.begin(), before.begin(), before.end());
    return std::make_unique<job::run>(line, o);
  };
  auto const newest = [&] {
    auto const found = edl::checkpoint::newest_valid(dir / "checkpoints");
    return found ? edl::checkpoint::read_manifest(*found).version : 0;
  };
  auto master = start(0, "master", {}, "0");
  REQUIRE(master->says("listens at "));
  std::string const said = master->log();
  auto const at = said.find("tcp:", said.find("listens at ")) + 4;
  std::string const where = said.substr(at, said.find_first_of("!,\n", at) - at);
  std::string const port = where.substr(where.rfind(':') + 1);
  auto const server = [&](int node, std::string const& id) {
    return start(node, "ps", {{"PS_ID", id}, {"MASTER_ADDR", where}}, "0");
  };
  auto const worker = [&](int node, std::string const& id) {
    return start(node, "worker", {{"WORKER_ID", id}, {"MASTER_ADDR", where}}, "0");
  };
  auto cut_server = server(0, "1"), left_server = server(1, "0");
  auto cut_worker = worker(0, "0"), first = worker(1, "1"), second = worker(1, "2");
  REQUIRE(job::eventually([&] { return newest() >= 40; }, 60s));
  wire->cut(0, false);
  REQUIRE(job::eventually([&] { return job::has(master->log(), "Going on at version "); }, 60s));
  std::uint64_t const behind = newest();
  REQUIRE(job::eventually([&] { return newest() >= behind + 60; }, 60s));
  for (auto* const of_the_node : {&master, &cut_server, &cut_worker}) of_the_node->reset();
  std::uint64_t const written = newest();
  wire->mend(0);
  master = start(0, "master", {}, port);
  cut_server = server(0, "1");
  CHECK(master->wait(120s) == 0);
  CAPTURE(master->log());
  CHECK(job::has(master->log(), "of a superseded history; the job goes on from the checkpoint of version "));
  CHECK(job::has(master->log(), "Going back to version " + std::to_string(written)));
  CHECK(first->wait(20s) == 0);
  CHECK(second->wait(20s) == 0);
  job::run audit({"audit", dir / "checkpoints"});
  CHECK(audit.wait() == 0);
}

TEST_CASE("a plan is drawn from its seed alone") {
  auto const a = chaos::draw_plan(7, {.allreduce = true}), b = chaos::draw_plan(7, {.allreduce = true}),
             c = chaos::draw_plan(8, {.allreduce = true});
  REQUIRE(a.faults.size() == b.faults.size());
  bool same = a.faults.size() == c.faults.size();
  for (std::size_t i = 0; i < a.faults.size(); ++i) {
    CHECK(a.faults[i].what == b.faults[i].what);
    CHECK(a.faults[i].choice == b.faults[i].choice);
    same = same && a.faults[i].choice == c.faults[i].choice;
  }
  CHECK_FALSE(same);
}

}  // namespace chaos_test
