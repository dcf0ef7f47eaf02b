// SPDX-License-Identifier: Apache-2.0
// How jobs with servers end when somebody tells them to.
#include <memory>

#include "app/tiny_job.hpp"

namespace cluster_ends_test {

using namespace tiny;

TEST_CASE("a worker that is told to leave hands back what it has leased and is replaced") {
  job::scratch const dir;
  job::run j(cluster(1, 2, {"--use_async", "--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}),
             slow);
  reach_middle(j);
  ::kill(j.find("worker", 0), SIGTERM);
  CHECK(j.says("[worker-0] shutting down: returned the lease"));
  CHECK(j.says("worker 2 joined"));
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(has(log, "; 0 tasks go to others"));
  check_account(log, 3);
  check_ledgers(dir / "checkpoints", 3, 1);
}

TEST_CASE("a signal to the command ends the whole job") {
  for (int signal : {SIGINT, SIGTERM}) {
    job::run j(cluster(2, 2, {"--num_epochs=0"}), slow);
    reach_middle(j);
    ::kill(j.pid(), signal);
    CHECK(j.wait(20s) == 128 + signal);
    CHECK(j.nothing_left());
    CAPTURE(j.log());
    CHECK(has(j.log(), "stopped; nothing was kept, because --checkpoint_dir is not given"));
    CHECK_FALSE(has(j.log(), " is started "));
  }
}

TEST_CASE("what ends a group or a session reaches every process, maybe twice, and keeps the state") {
  for (lines const& how : {lines{}, lines{"--num_ps_pods=2", "--num_workers=2"},
                           lines{"--distribution_strategy=AllreduceStrategy", "--num_workers=2"}})
    for (int const signal : {SIGTERM, SIGHUP}) {
      job::scratch const dir;
      lines flags{"--num_epochs=0", "--checkpoint_dir=" + dir / "checkpoints"};
      flags.insert(flags.end(), how.begin(), how.end());
      job::run j(train(flags), slow);
      reach_middle(j);
      auto const all = j.processes();
      for (job::process const& p : all)
        if (p.pid != j.pid()) ::kill(p.pid, signal);
      ::kill(j.pid(), signal);  // at last
      for (job::process const& p : all) ::kill(p.pid, SIGHUP);
      int const code = j.wait();
      // Of two that wait the system tells SIGHUP first.
      CHECK((code == 128 + signal || code == 128 + SIGHUP));
      CHECK(j.nothing_left());
      CAPTURE(j.log());
      CAPTURE(flags.back());
      auto const newest = edl::checkpoint::newest_valid(dir / "checkpoints");
      REQUIRE(newest);
      CHECK(has(j.log(), "the same command goes on from " + *newest));
      CHECK_FALSE(has(j.log(), "is lost"));
      CHECK_FALSE(has(j.log(), "returned the lease"));
    }
}

TEST_CASE("Ctrl-C to a master that was started by hand writes a checkpoint, and all leave") {
  job::scratch const dir;
  auto const role = [&](job::environment more) {
    more.insert(more.end(), {{"EDL_JOB_NAME", "by-hand"},
                             {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"},
                             {"TINY_DELAY_US", "900"}});
    return std::make_unique<job::run>(
        cluster(1, 1, {"--use_async", "--num_epochs=0", "--checkpoint_dir=" + dir / "checkpoints"}),
        job::options{.env = more});
  };
  auto const master = role({{"EDL_ROLE", "master"}});
  REQUIRE(master->says("listens at "));
  std::string const log = master->log();
  auto const at = log.find("tcp:", log.find("listens at ")) + 4;
  std::string const where = log.substr(at, log.find('\n', at) - at);
  auto const server = role({{"EDL_ROLE", "ps"}, {"PS_ID", "0"}, {"MASTER_ADDR", where}});
  auto const worker = role({{"EDL_ROLE", "worker"}, {"WORKER_ID", "0"}, {"MASTER_ADDR", where}});
  reach_middle(*master);
  ::kill(master->pid(), SIGINT);
  CHECK(master->wait() == 128 + SIGINT);
  for (auto const* r : {&server, &worker}) {
    CHECK((*r)->wait() == 0);
    CAPTURE((*r)->log());
    CHECK((*r)->wait() == 0);
  }
  CAPTURE(master->log());
  auto const newest = edl::checkpoint::newest_valid(dir / "checkpoints");
  REQUIRE(newest);
  CHECK(has(master->log(), "the same command goes on from " + *newest));
}

TEST_CASE("nothing survives the command, whatever kills it") {
  job::run j(cluster(2, 2, {"--num_epochs=0"}), slow);
  reach_middle(j);
  CHECK(j.processes().size() == 6);
  ::kill(j.pid(), SIGKILL);
  CHECK(j.wait() == 128 + SIGKILL);
  CHECK(j.nothing_left(5s));
}

}  // namespace cluster_ends_test
