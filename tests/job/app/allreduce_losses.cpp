// SPDX-License-Identifier: Apache-2.0
// Jobs by all-reduce that lose workers, or their master.
#include <memory>

#include "job/app/tiny_job.hpp"

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
  job::options const wide{.env = {{"TINY_WIDE", "1"}}};
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
    check_end(j, dir / "checkpoints", 2);
    CAPTURE(j.log());
    CHECK(has(j.log(), "worker 3 joined"));
    // Otherwise as many steps are made as members happen to be there, and a few steps teach little.
    if (fixed) CHECK(last_accuracy(j.log()) > 0.7);
  }
}

TEST_CASE("two workers killed at once: the third goes on") {
  job::scratch const dir;
  job::run j(replicas(3, {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}), slow);
  reach_middle(j);
  pid_t const survivor = j.find("worker", 1), first = j.find("worker", 0), last = j.find("worker", 2);
  REQUIRE((survivor && first && last));
  ::kill(first, SIGKILL), ::kill(last, SIGKILL);
  CHECK(j.says("worker 4 joined"));
  CHECK(j.find("worker", 1) == survivor);
  check_end(j, dir / "checkpoints", 3);
  CAPTURE(j.log());
  CHECK(count(j.log(), " to others") == 2);
  CHECK_FALSE(has(j.log(), "Going back to version 0"));
}

TEST_CASE("all workers with a copy killed at once: back to the newest checkpoint, or to the start") {
  for (bool checkpoints : {true, false}) {
    CAPTURE(checkpoints);
    job::scratch const dir;
    lines flags{"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"};
    if (checkpoints) flags.push_back("--checkpoint_steps=2");
    job::run j(replicas(2, flags), checkpoints ? held : slow);
    REQUIRE(checkpoints ? j.says("Checkpoint of version ", 2) : j.says(" completed, ", 4));
    pid_t const a = j.find("worker", 0), b = j.find("worker", 1);
    REQUIRE((a && b));
    ::kill(a, SIGKILL), ::kill(b, SIGKILL);
    j.open_gate();
    CHECK(j.says("] World 2: "));
    std::string const world = last_world(j.log());
    CAPTURE(world);
    CHECK(has(world, "from version "));
    CHECK(world.ends_with("from version 0") == !checkpoints);
    CHECK((checkpoints || has(j.log(), "Going back to version 0, 0 records done")));
    check_end(j, dir / "checkpoints", 2);
    CHECK(count(j.log(), " to others") == 2);
  }
}

TEST_CASE("a worker with a copy that is told to leave does so, and is replaced") {
  job::scratch const dir;
  job::run j(replicas(2, {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}), slow);
  reach_middle(j);
  pid_t const survivor = j.find("worker", 1);
  pid_t const leaves = j.find("worker", 0);
  REQUIRE((survivor && leaves));
  ::kill(leaves, SIGTERM);
  CHECK(j.says("worker 2 joined"));
  CHECK(j.find("worker", 1) == survivor);
  check_end(j, dir / "checkpoints", 3);
  CAPTURE(j.log());
  CHECK(has(j.log(), "[worker-0] told to stop: what was leased has been handed back"));
  CHECK(has(j.log(), "worker 0 has left"));
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

TEST_CASE("evaluations go on while workers with a copy are killed and come") {
  job::scratch const dir;
  job::run j(replicas(3, {"--num_epochs=4", "--validation_data=" + job::data().validation,
                          "--num_minibatches_per_task=1", "--evaluation_steps=8",
                          "--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=4"}),
             {.env = {{"TINY_DELAY_US", "900"}, {"TINY_EVALUATION_DELAY_US", "300"}}});
  // One after the other, so that in the end nobody is left who was there in the beginning.
  for (int id : {0, 1, 2}) {
    REQUIRE(j.says("Evaluation metrics[v=", count(j.log(), "Evaluation metrics[v=") + 1));
    pid_t const victim = j.find("worker", id);
    if (!victim) break;
    ::kill(victim, SIGKILL);
  }
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  check_account(log, 4);
  CHECK(count(log, " to others") == 3);
  CHECK(last_accuracy(log) > 0.8);  // whatever the number of steps, as above
  // Each version once, and the last one among them.
  auto const m = edl::checkpoint::read_manifest(*edl::checkpoint::newest_valid(dir / "checkpoints"));
  CHECK(count(log, "Evaluation metrics[v=" + std::to_string(m.version) + "]") == 1);
  for (std::uint64_t v = 8; v < m.version; v += 8)
    CHECK(count(log, "Evaluation metrics[v=" + std::to_string(v) + "]") <= 1);
  CHECK_FALSE(has(log, "[ERROR]"));
}

TEST_CASE("a worker killed in the last evaluation, when all has been trained: the job still ends") {
  for (int victim : {0, 1}) {
    job::scratch const dir;
    job::run j(replicas(2, {"--num_epochs=1", "--validation_data=" + job::data().validation,
                            "--evaluation_steps=1000", "--checkpoint_dir=" + dir / "checkpoints",
                            "--output=" + dir / "model"}),
               {.env = {{"TINY_EVALUATION_DELAY_US", "3000"}}});
    REQUIRE(j.says(" completed, 0 remaining"));
    pid_t const process = j.find("worker", victim);
    REQUIRE(process);
    ::kill(process, SIGKILL);
    check_end(j, dir / "checkpoints", 1);
    CAPTURE(j.log());
    CHECK(count(j.log(), "] World ") >= 2);
    CHECK(count(j.log(), "Evaluation metrics[v=") == 1);
    CHECK(std::filesystem::exists(dir / "model/model.safetensors"));
  }
}

TEST_CASE("the master killed in the last evaluation: the end is evaluated all the same") {
  job::scratch const dir;
  job::run j(replicas(2, {"--num_epochs=1", "--validation_data=" + job::data().validation,
                          "--evaluation_steps=1000", "--checkpoint_dir=" + dir / "checkpoints"}),
             {.env = {{"TINY_EVALUATION_DELAY_US", "5000"}}});
  REQUIRE(j.says(" completed, 0 remaining"));
  REQUIRE(j.says("Checkpoint of version "));
  pid_t const process = j.find("master");
  REQUIRE(process);
  ::kill(process, SIGKILL);
  check_end(j, dir / "checkpoints", 1);
  CAPTURE(j.log());
  CHECK(has(j.log(), "this one takes its place"));
  CHECK(count(j.log(), "Evaluation metrics[v=") == 1);
}

}  // namespace allreduce_losses_test
