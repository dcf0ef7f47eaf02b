// SPDX-License-Identifier: Apache-2.0
// Jobs with servers that lose workers and servers. Many losses in one job: new histories of `edl-world`.
#include <memory>

#include "app/tiny_job.hpp"

namespace cluster_losses_test {

using namespace tiny;

TEST_CASE("a killed worker is replaced under the next id; the other stays, nothing is lost or doubled") {
  for (lines f : {lines{"--use_async"}, lines{"--grads_to_wait=2"}, lines{"--outer_steps=5"}}) {
    job::scratch const dir;
    f.insert(f.end(), {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"});
    job::run j(cluster(2, 2, f), slow);
    reach_middle(j);
    pid_t const survivor = j.find("worker", 0), victim = j.find("worker", 1), server = j.find("ps", 0);
    REQUIRE((survivor && victim && server));
    ::kill(victim, SIGKILL);
    CHECK(j.says("worker 2 joined"));
    CHECK(j.find("worker", 0) == survivor);
    CHECK(j.find("worker", 1) == 0);
    CHECK(j.find("worker", 2) != 0);
    CHECK(j.find("ps", 0) == server);
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(has(log, "worker-1 was killed by signal 9"));
    CHECK_FALSE(has(log, "Going back to"));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("a killed server is replaced and all go back to the last checkpoint") {
  for (lines f : {lines{"--use_async"}, lines{"--grads_to_wait=2"}, lines{"--outer_steps=2"}}) {
    job::scratch const dir;
    f.insert(f.end(), {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=2"});
    job::run j(cluster(2, 2, f), held);  // however slow the disk is
    REQUIRE(j.says("Checkpoint of version ", 2));
    REQUIRE((j.find("worker", 0) && j.find("worker", 1) && j.find("ps", 0)));
    ::kill(j.find("ps", 1), SIGKILL);
    CHECK(j.says("Going back to version "));
    j.open_gate();
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to version 0"));
    CHECK(count(log, "server 1 joined") == 2);
    CHECK(count(log, "server 0 joined") == 1);
    CHECK(count(log, "worker 2 joined") == 0);
    CHECK(has(log, "generation 2: "));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("a job without a checkpoint directory survives the loss of a server, too") {
  job::scratch const dir;
  job::run j(cluster(2, 1, {"--num_epochs=1", "--output=" + dir / "model"}), slow);
  reach_middle(j, 2);
  ::kill(j.find("ps", 1), SIGKILL);
  CHECK(j.wait() == 0);
  check_account(j.log(), 1);
  // One worker, from the seed again: as if nothing had been.
  CHECK(job::run(train({"--output=" + dir / "undisturbed"})).wait() == 0);
  CHECK(slurp(dir / "model/model.safetensors") == slurp(dir / "undisturbed/model.safetensors"));
}

TEST_CASE("servers with backups: the loss of one loses nothing, and nobody goes back") {
  for (std::string const mode : {"--use_async", "--grads_to_wait=2"}) {
    job::scratch const dir;
    job::run j(
        cluster(3, 2, {mode, "--ps_replicas=2", "--num_epochs=4", "--checkpoint_dir=" + dir / "checkpoints"}),
        slow);
    for (int victim : {1, 0}) {
      reach_middle(j, victim == 1 ? 4 : 12);
      std::vector<pid_t> const workers{j.find("worker", 0), j.find("worker", 1)};
      ::kill(j.find("ps", victim), SIGKILL);
      CHECK(j.says("server " + std::to_string(victim) + " joined", 2));
      CHECK(workers == std::vector<pid_t>{j.find("worker", 0), j.find("worker", 1)});
    }
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to version"));
    check_account(log, 4);
    check_ledgers(dir / "checkpoints", 4, 3);
  }
}

TEST_CASE("a server that is silent is left behind with its copy in place, and found out when it wakes") {
  job::run j(cluster(2, 2, {"--use_async", "--ps_replicas=2", "--num_epochs=8"}), slow);
  reach_middle(j, 4);
  pid_t const silent = j.find("ps", 1);
  REQUIRE(silent);
  ::kill(silent, SIGSTOP);
  CHECK(j.says("server 1 is lost: it gave no sign of life"));
  CHECK(j.says("Going on at version "));
  // While it still says nothing: those who waited for it do not any more.
  auto const done = count(j.log(), " completed, ");
  CHECK(j.says(" completed, ", done + 5));
  ::kill(silent, SIGCONT);
  CHECK(j.wait(120s) == 0);
  CHECK(j.nothing_left());
  CAPTURE(j.log());
  CHECK_FALSE(has(j.log(), "Going back to version"));
  check_account(j.log(), 8);
}

TEST_CASE("workers that always fail end the job, with their reason") {
  for (std::string const how : {"throw", "abort", "exit"}) {
    job::run j(cluster(1, 2, {"--relaunch_on_worker_failure=1"}), {.env = {{"TINY_FAILS", how}}});
    CHECK(j.wait() == 1);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    std::string const last = log.substr(log.rfind("\ntiny: "));
    CHECK(has(last, how == "throw"   ? "this worker was told to fail"
                    : how == "abort" ? "was killed by signal 6 (Aborted): tiny: libdata.so is not there"
                                     : "exited with code 3: tiny: libdata.so is not there"));
    if (how != "throw") {
      CHECK(has(log, "worker 3 failed too often"));
      CHECK_FALSE(has(log, "worker 4 joined"));
    }
  }
}

}  // namespace cluster_losses_test
