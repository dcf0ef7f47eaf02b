// SPDX-License-Identifier: Apache-2.0
// Jobs by all-reduce that lose workers. Losses while they evaluate, and several: new histories of
// `edl-world`.
#include <memory>

#include "app/tiny_job.hpp"

namespace allreduce_losses_test {

using namespace tiny;

TEST_CASE("a killed worker with a copy: the others go on as the processes that they are") {
  for (int victim : {1, 0}) {  // 0 is the first of its world, who writes checkpoints
    CAPTURE(victim);
    job::scratch const dir;
    job::run j(replicas(3, {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints",
                            "--checkpoint_steps=5", "--output=" + dir / "model"}),
               slow);
    reach_middle(j);
    std::vector<pid_t> before;
    for (int id : {0, 1, 2}) before.push_back(j.find("worker", id));
    REQUIRE(std::count(before.begin(), before.end(), 0) == 0);
    ::kill(before[std::size_t(victim)], SIGKILL);
    CHECK(j.says("worker 3 joined"));
    for (int id : {0, 1, 2}) CHECK(j.find("worker", id) == (id == victim ? 0 : before[std::size_t(id)]));
    check_end(j, dir / "checkpoints", 3);
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(count(log, "worker " + std::to_string(victim) + " is lost: ") == 1);
    CHECK(count(log, " to others") == 1);
    CHECK(has(log, "] took version "));
    CHECK(has(last_world(log), "3 workers ("));
    CHECK(has(last_world(log), "3 (new)"));
    CHECK_FALSE(has(log, "going on from"));
    CHECK(std::filesystem::exists(dir / "model/model.safetensors"));
  }
}

TEST_CASE(
    "a model of several buckets: sums begin while gradients are computed, and a worker is killed then") {
  job::options const wide{.env = {{"TINY_WIDE", "1"}, {"TINY_DELAY_US", "900"}}};
  for (bool const fixed : {false, true}) {
    CAPTURE(fixed);
    job::scratch const dir;
    lines flags{"--num_epochs=2", "--validation_data=" + job::data().validation, "--num_threads=1",
                "--checkpoint_dir=" + dir / "checkpoints"};
    if (fixed) flags.push_back("--fixed_global_batch");
    job::run j(replicas(3, flags), wide);
    reach_middle(j, 6);
    pid_t const victim = j.find("worker", 1);
    REQUIRE(victim);
    ::kill(victim, SIGKILL);
    CHECK(j.says("worker 3 joined"));
    j.open_gate();
    check_end(j, dir / "checkpoints", 2);
    CAPTURE(j.log());
    // Otherwise as many steps are made as members happen to be there, and a few steps teach little.
    if (fixed) CHECK(last_accuracy(j.log()) > 0.7);
  }
}

TEST_CASE("all workers with a copy killed at once: back to the newest checkpoint, or to the start") {
  for (bool checkpoints : {true, false}) {
    CAPTURE(checkpoints);
    job::scratch const dir;
    lines flags{"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"};
    if (checkpoints) flags.push_back("--checkpoint_steps=2");
    job::run j(replicas(2, flags), checkpoints ? held : slow);
    REQUIRE((checkpoints ? j.says("Checkpoint of version ", 2) : j.says(" completed, ", 4)));
    pid_t const a = j.find("worker", 0), b = j.find("worker", 1);
    REQUIRE((a && b));
    ::kill(a, SIGKILL), ::kill(b, SIGKILL);
    j.open_gate();
    CHECK(j.says("] World 2: "));
    std::string const world = last_world(j.log(), "2: ");
    CAPTURE(world);
    CHECK(has(world, "from version "));
    CHECK(world.ends_with("from version 0") == !checkpoints);
    CHECK((checkpoints || has(j.log(), "Going back to version 0, 0 records done")));
    check_end(j, dir / "checkpoints", 2);
    CHECK(count(j.log(), " to others") == 2);
  }
}

TEST_CASE("a worker that stands still for too long is given up, and replaced at once") {
  job::scratch const dir;
  job::run j(replicas(3, {"--num_epochs=4", "--checkpoint_dir=" + dir / "checkpoints"}), slow);
  reach_middle(j);
  pid_t const still = j.find("worker", 2), other = j.find("worker", 0);
  REQUIRE(still);
  ::kill(still, SIGSTOP);
  CHECK(j.says("worker 2 is lost: it gave no sign of life"));
  CHECK(j.says("worker 3 joined"));
  CHECK(job::eventually([&] { return j.find("worker", 2) == 0; }));  // which nobody has woken
  CHECK(j.find("worker", 0) == other);
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  CAPTURE(j.log());
  check_account(j.log(), 4);
  check_ledgers(dir / "checkpoints", 4);
  CHECK(count(j.log(), " to others") == 1);
}

}  // namespace allreduce_losses_test
