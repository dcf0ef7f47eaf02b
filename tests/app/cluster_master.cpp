// SPDX-License-Identifier: Apache-2.0
// Jobs with servers whose master is away or is lost.
#include <atomic>
#include <memory>

#include "app/kept_port.hpp"
#include "app/relay.hpp"
#include "app/tiny_job.hpp"

namespace cluster_master_test {

using namespace tiny;

TEST_CASE("a master that ends amid the export of a complete job is followed by one that exports alone") {
  job::scratch const dir;
  std::filesystem::create_directory(dir / "x");
  auto const command = replicas(1, {"--num_epochs=1", "--checkpoint_dir=" + dir / "c",
                                    "--output=" + dir / "o", "--export_onnx=" + dir / "x/m.onnx"});
  auto const role = [&](job::environment more) {
    more.insert(more.end(),
                {{"EDL_JOB_NAME", "by-hand"}, {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"}});
    return std::make_unique<job::run>(command, job::options{.env = more});
  };
  auto const master = role({{"EDL_ROLE", "master"}});
  REQUIRE(master->says("listens at "));
  std::filesystem::remove(dir / "x");
  std::string const where = "127.0.0.1:" + std::to_string(job::relay::place_of(master->log()).port());
  auto const worker = role({{"EDL_ROLE", "worker"}, {"WORKER_ID", "0"}, {"MASTER_ADDR", where}});
  CHECK(worker->wait() == 0);
  CHECK(master->wait() == 1);
  CAPTURE(master->log());
  CHECK(has(master->log(), "x/m.onnx"));
  CHECK(std::filesystem::exists(dir / "c/master.json"));
  std::filesystem::create_directory(dir / "x");
  auto const next = role({{"EDL_ROLE", "master"}});
  CHECK(next->wait() == 0);
  CAPTURE(next->log());
  CHECK(has(next->log(), "ONNX model written to " + dir / "x/m.onnx"));
  CHECK_FALSE(has(next->log(), "Starting epoch"));
  CHECK_FALSE(std::filesystem::exists(dir / "c/master.json"));
}

TEST_CASE("a killed master is replaced; servers, workers and what they have done stay") {
  for (std::string const mode : {"--grads_to_wait=2"}) {
    job::scratch const dir;
    job::run j(cluster(2, 2, {mode, "--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}), slow);
    std::vector<pid_t> before;
    for (std::size_t kill = 0; kill < 2; ++kill) {
      reach_middle(j, 4 * (kill + 1));
      std::vector<pid_t> const now{j.find("ps", 0), j.find("ps", 1), j.find("worker", 0),
                                   j.find("worker", 1)};
      CHECK((kill == 0 || now == before));
      before = now;
      ::kill(j.find("master"), SIGKILL);
      CHECK(j.says("this one takes its place", kill + 1));
      CHECK(j.says("Going on at version", kill + 1));
    }
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to version"));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("a master that is killed again and again ends the job") {
  job::run j(cluster(1, 1, {"--num_epochs=0"}), slow);
  reach_middle(j);
  pid_t last = 0;
  while (!j.ended()) {
    pid_t const now = j.find("master");
    if (now != 0 && now != last) ::kill(last = now, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
  CHECK(j.wait(20s) == 128 + SIGKILL);
  CHECK(j.nothing_left(5s));
  CHECK(has(j.log(), "the master was killed by signal 9 (Killed), for the 6th time within a minute"));
}

}  // namespace cluster_master_test
