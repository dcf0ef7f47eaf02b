// SPDX-License-Identifier: Apache-2.0
// Whole jobs that train by all-reduce: a master and workers with a copy of the model each, each a process.
#include <memory>

#include "app/job.hpp"
#include "edl/checkpoint/directory.hpp"
#include "edl/checkpoint/manifest.hpp"

using job::count, job::has, job::slurp, job::train;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

/// Slow enough that something can be done in the middle.
job::options const slow{.env = {{"TINY_DELAY_US", "900"}}};

lines replicas(int workers, lines more = {}) {
  more.insert(more.end(),
              {"--distribution_strategy=AllreduceStrategy", "--num_workers=" + std::to_string(workers)});
  return train(more);
}

double last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
}

void check_account(std::string const& log, int epochs) {
  for (int e = 0; e < epochs; ++e)
    CHECK(has(log, "Epoch " + std::to_string(e) +
                       ": 2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left"));
}

/// The last checkpoint: one file, in which all tasks of all epochs are closed, and none is open.
void check_ledger(std::string const& checkpoints, std::uint32_t epochs, std::size_t files = 1) {
  auto const newest = edl::checkpoint::newest_valid(checkpoints);
  REQUIRE(newest);
  auto const m = edl::checkpoint::read_manifest(*newest);
  CHECK(m.files.size() == files);
  for (auto const& file : m.files) {
    CHECK(file.ledger.open().empty());
    CHECK(file.ledger.closed().size() == epochs);
    for (auto const& [epoch, tasks] : file.ledger.closed()) CHECK(tasks.count() == 16);
  }
}

void reach_middle(job::run& j, std::size_t tasks = 4) { REQUIRE(j.says(" completed, ", tasks)); }

/// A job that `scale` finds, and no other test's.
std::string job_name() { return "fixed-" + std::to_string(::getpid()); }

/// The line of the newest world.
std::string last_world(std::string const& log) {
  auto const at = log.rfind("] World ");
  return at == std::string::npos ? "" : log.substr(at + 2, log.find('\n', at) - at - 2);
}

void check_end(job::run& j, std::string const& checkpoints, int epochs) {
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  check_account(log, epochs);
  check_ledger(checkpoints, std::uint32_t(epochs));
  CHECK_FALSE(has(log, "cannot be written"));
  CHECK_FALSE(has(log, "is not evaluated"));
  CHECK_FALSE(has(log, "[ERROR]"));
}

}  // namespace

// How many steps are made is the schedule's: a worker that finds no other at a step makes it alone. A model
// of any number of them, from all workers in each step (88 of three workers) to one worker in each (256),
// reaches 0.88, so that 0.8 is no matter of luck. With --fixed_global_batch the number is known.
TEST_CASE("workers with a copy each train as well as one process does, and their steps are common") {
  for (auto const& [workers, fixed] : {std::pair(2, false), std::pair(3, false), std::pair(2, true)}) {
    CAPTURE(workers);
    CAPTURE(fixed);
    job::scratch const dir;
    lines flags{"--validation_data=" + job::data().validation,
                "--num_epochs=4",
                "--evaluation_steps=20",
                "--log_loss_steps=10",
                "--output=" + dir / "model",
                "--checkpoint_dir=" + dir / "checkpoints"};
    if (fixed) flags.push_back("--fixed_global_batch");
    job::run j(replicas(workers, flags));
    check_end(j, dir / "checkpoints", 4);
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(count(log, "Evaluation metrics[v=20]: {'accuracy': ") == 1);
    CHECK(last_accuracy(log) > 0.8);
    CHECK(count(log, "] World ") == 1);
    CHECK_FALSE(has(log, "[WARNING]"));
    CHECK(std::filesystem::file_size(dir / "model/model.safetensors") > 259 * sizeof(float));
    auto const m = edl::checkpoint::read_manifest(*edl::checkpoint::newest_valid(dir / "checkpoints"));
    CHECK(m.version <= (fixed ? 128u : 256u));  // of 256 minibatches
    CHECK(m.version >= 256u / unsigned(workers));
  }
}

TEST_CASE("one worker with a copy gives the same bits as one process, at once and in two goes") {
  job::scratch const dir;
  auto const flags = [&](std::string const& name, int epochs) {
    return lines{"--num_epochs=" + std::to_string(epochs), "--output=" + dir / name,
                 "--checkpoint_dir=" + dir / name + "-c"};
  };
  CHECK(job::run(train(flags("local", 2))).wait() == 0);
  CHECK(job::run(replicas(1, flags("one", 2))).wait() == 0);
  std::string const model = slurp(dir / "local/model.safetensors");
  auto const checkpoint = [&](std::string const& name) {
    std::string const path = dir / name + "-c/version-128/";
    return slurp(path + edl::checkpoint::read_manifest(path).files.at(0).name);
  };
  CHECK(model.size() > 259 * sizeof(float));
  CHECK(model == slurp(dir / "one/model.safetensors"));
  CHECK_FALSE(checkpoint("local").empty());
  CHECK(checkpoint("local") == checkpoint("one"));
  // Without a checkpoint, the model is taken from the worker all the same.
  job::run bare(replicas(1, {"--num_epochs=2", "--output=" + dir / "bare"}));
  CHECK(bare.wait() == 0);
  CAPTURE(bare.log());
  CHECK(model == slurp(dir / "bare/model.safetensors"));
  CHECK(job::run(replicas(1, flags("twice", 1))).wait() == 0);
  job::run again(replicas(1, flags("twice", 2)));
  CHECK(again.wait() == 0);
  CHECK(has(again.log(), "going on from " + dir / "twice-c/version-64"));
  CHECK(model == slurp(dir / "twice/model.safetensors"));
}

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
    CHECK(count(log, " tasks go to others") == 1);
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
  CHECK(count(j.log(), " tasks go to others") == 2);
  CHECK_FALSE(has(j.log(), "Going back to version 0"));
}

TEST_CASE("all workers with a copy killed at once: back to the newest checkpoint, or to the start") {
  for (bool checkpoints : {true, false}) {
    CAPTURE(checkpoints);
    job::scratch const dir;
    lines flags{"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"};
    if (checkpoints) flags.push_back("--checkpoint_steps=4");
    job::run j(replicas(2, flags), slow);
    REQUIRE(checkpoints ? j.says("Checkpoint of version ", 2) : j.says(" completed, ", 4));
    pid_t const a = j.find("worker", 0), b = j.find("worker", 1);
    REQUIRE((a && b));
    ::kill(a, SIGKILL), ::kill(b, SIGKILL);
    CHECK(j.says("] World 2: "));
    std::string const world = last_world(j.log());
    CAPTURE(world);
    CHECK(has(world, "from version "));
    CHECK(world.ends_with("from version 0") == !checkpoints);
    CHECK((checkpoints || has(j.log(), "Going back to version 0, 0 records done")));
    check_end(j, dir / "checkpoints", 2);
    CHECK(count(j.log(), " tasks go to others") == 2);
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
  check_ledger(dir / "checkpoints", 4);
  CHECK(count(j.log(), " tasks go to others") == 1);
}

TEST_CASE("what servers wrote a job without servers goes on with, and the other way round") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  CHECK(job::run(train({checkpoints, "--num_epochs=1", "--num_ps_pods=3", "--num_workers=2"})).wait() == 0);
  {
    // A second one in its middle: the servers' ledgers differ.
    job::run j(train({checkpoints, "--num_epochs=2", "--checkpoint_steps=7", "--num_ps_pods=3",
                      "--num_workers=3", "--use_async"}),
               slow);
    REQUIRE(j.says("Checkpoint of version ", 2));
    ::kill(j.pid(), SIGKILL);
    CHECK(j.nothing_left(5s));
  }
  {
    job::run j(replicas(2, {checkpoints, "--num_epochs=2", "--checkpoint_steps=4"}), slow);
    REQUIRE(j.says("Checkpoint of version ", 2));
    CHECK(has(j.log(), "going on from "));
    CHECK_FALSE(has(j.log(), "Starting epoch 0"));
    ::kill(j.pid(), SIGKILL);
    CHECK(j.nothing_left(5s));
  }
  {
    job::run j(train({checkpoints, "--num_epochs=3", "--num_ps_pods=2", "--num_workers=2"}), slow);
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "going on from "));
    check_account(j.log(), 3);
    check_ledger(dir / "checkpoints", 3, 2);
  }
  job::run j(replicas(2, {checkpoints, "--num_epochs=4"}));
  check_end(j, dir / "checkpoints", 4);
  CHECK(count(j.log(), " completed, ") == 16);
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
  CHECK(count(log, " tasks go to others") == 3);
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

TEST_CASE("more workers than tasks: those without work take part in the others' steps") {
  job::scratch const dir;
  job::run j(replicas(4, {"--num_epochs=2", "--num_minibatches_per_task=64", "--minibatch_size=512",
                          "--checkpoint_dir=" + dir / "checkpoints"}));
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  CAPTURE(j.log());
  check_account(j.log(), 2);
  job::run few(replicas(3, {"--num_epochs=1", "--num_minibatches_per_task=1024"}));
  CHECK(few.wait() == 0);
  CAPTURE(few.log());
  check_account(few.log(), 1);
}

TEST_CASE("gradients that travel in half the bytes around the ring train as well, and are not the same") {
  job::scratch const dir;
  for (char const* name : {"float32", "bfloat16"}) {
    job::run j(replicas(2, {"--validation_data=" + job::data().validation, "--num_epochs=3",
                            std::string("--gradients=") + name, "--output=" + dir / name,
                            "--checkpoint_dir=" + dir / name + "-c"}));
    check_end(j, dir / name + "-c", 3);
    CHECK(last_accuracy(j.log()) > 0.8);  // 96 to 192 steps
  }
  CHECK(slurp(dir / "float32/model.safetensors") != slurp(dir / "bfloat16/model.safetensors"));
}

TEST_CASE("damaged records are counted as skipped in whatever world they were met") {
  job::scratch const dir;
  std::string const name = "/part-0";
  std::string bytes = slurp(job::data().training + name);
  bytes[bytes.size() / 2] ^= 0x10;
  std::filesystem::create_directories(dir / "train");
  std::ofstream(dir / "train" + name, std::ios::binary) << bytes;
  lines const flags{"--training_data=" + dir / "train", "--num_epochs=3", "--skip_damaged"};
  auto const account = [](std::string const& log) {
    auto const from = log.find("Epoch 0: ");
    return from == std::string::npos ? "" : log.substr(from, log.find('\n', from) - from);
  };
  job::run local(train(flags));
  CHECK(local.wait() == 0);
  job::run j(replicas(2, flags), slow);
  reach_middle(j, 5);
  pid_t const victim = j.find("worker", 0);
  REQUIRE(victim);
  ::kill(victim, SIGKILL);
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "worker 2 joined"));
  CHECK_FALSE(has(account(local.log()), ", 0 skipped as damaged"));
  CHECK(account(j.log()) == account(local.log()));
}

TEST_CASE("predictions and evaluations by workers with a copy each") {
  job::scratch const dir;
  CHECK(job::run(train({"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"})).wait() == 0);
  lines const from{"--checkpoint_dir_for_init=" + dir / "checkpoints/version-128", "--minibatch_size=32",
                   "--num_minibatches_per_task=4"};
  std::string metrics, predicted;
  for (lines const& how : {lines{}, lines{"--distribution_strategy=AllreduceStrategy", "--num_workers=2"}}) {
    lines evaluate{"evaluate", "--validation_data=" + job::data().validation},
        predict{"predict", "--prediction_data=" + job::data().validation,
                "--prediction_outputs=" + dir / "out"};
    for (lines* line : {&evaluate, &predict}) {
      line->insert(line->end(), from.begin(), from.end());
      line->insert(line->end(), how.begin(), how.end());
    }
    job::run e(evaluate);
    CHECK(e.wait() == 0);
    CAPTURE(e.log());
    auto const at = e.log().find("Evaluation metrics[v=128]: {'accuracy': ");
    REQUIRE(at != std::string::npos);
    std::string const line = e.log().substr(at, e.log().find('\n', at) - at);
    if (metrics.empty()) metrics = line;
    CHECK(line == metrics);
    std::filesystem::remove_all(dir / "out");
    job::run p(predict);
    CHECK(p.wait() == 0);
    CAPTURE(p.log());
    std::string all;
    for (char const* part : {"0", "1", "2", "3"}) all += slurp(dir / "out/part-0000" + part + ".csv");
    CHECK(count(all, "\n") == 512);
    if (predicted.empty()) predicted = all;
    CHECK(all == predicted);
  }
}

TEST_CASE("servers and copies do not go together, and it is said") {
  job::run j(replicas(2, {"--num_ps_pods=1"}));
  CHECK(j.wait() != 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "--num_ps_pods"));
  CHECK(has(j.log(), "AllreduceStrategy has no servers"));
  CHECK_FALSE(has(j.log(), "joined"));
}

TEST_CASE(
    "a fixed global batch: the same bits, however many make the steps, and whoever comes, goes or is lost") {
  job::scratch const dir;
  // Of 192 minibatches three each are a step.
  auto const start = [&](std::string const& name, lines more = {}, job::environment env = slow.env) {
    lines flags{
        "--fixed_global_batch",     "--deterministic",        "--num_threads=1",
        "--num_epochs=3",           "--evaluation_steps=20",  "--validation_data=" + job::data().validation,
        "--job_name=" + job_name(), "--output=" + dir / name, "--checkpoint_dir=" + dir / name + "-c"};
    flags.insert(flags.end(), more.begin(), more.end());
    return std::make_unique<job::run>(replicas(3, flags), job::options{.env = std::move(env)});
  };
  auto const ended = [&](job::run& j, std::string const& name) {
    check_end(j, dir / name + "-c", 3);
    auto const newest = edl::checkpoint::read_manifest(*edl::checkpoint::newest_valid(dir / name + "-c"));
    CHECK(newest.version == 64);
    CHECK(count(j.log(), "Evaluation metrics[v=60]") == 1);
    return slurp(dir / name + "/model.safetensors") +
           slurp(dir / name + "-c/version-64/" + newest.files.at(0).name);
  };
  auto const scaled_to = [&](std::string const& workers) {
    CHECK(job::run({"scale", "--job_name=" + job_name(), "--num_workers=" + workers}).wait() == 0);
  };
  auto const undisturbed = ended(*start("whole"), "whole");
  CHECK(undisturbed.size() > 3 * 259 * sizeof(float));
  CHECK(ended(*start("fast", {}, {}), "fast") == undisturbed);
  for (std::string const workers : {"1", "2", "5"}) {
    CAPTURE(workers);
    auto const j = start("size-" + workers);
    REQUIRE(j->says("Starting epoch 0"));
    scaled_to(workers);
    CHECK(ended(*j, "size-" + workers) == undisturbed);
  }
  for (int const signal : {SIGKILL, SIGTERM})
    for (int const victim : {0, 2}) {
      CAPTURE(signal);
      CAPTURE(victim);
      std::string const name = "lost-" + std::to_string(signal) + "-" + std::to_string(victim);
      auto const j = start(name);
      reach_middle(*j, 6 + std::size_t(victim));
      pid_t const process = j->find("worker", victim);
      REQUIRE(process);
      ::kill(process, signal);
      CHECK(j->says("worker 3 joined"));
      CHECK(ended(*j, name) == undisturbed);
    }
  // Two lost at once while the job grows, and the master a little later.
  auto const j = start("many");
  reach_middle(*j, 8);
  pid_t const one = j->find("worker", 0), other = j->find("worker", 1);
  REQUIRE((one && other));
  scaled_to("4");
  ::kill(one, SIGKILL), ::kill(other, SIGKILL);
  reach_middle(*j, 16);
  pid_t const master = j->find("master", 0);
  REQUIRE(master);
  ::kill(master, SIGKILL);
  CHECK(ended(*j, "many") == undisturbed);
  {
    auto const broken_off = start("again", {"--checkpoint_steps=7"});
    REQUIRE(broken_off->says("Checkpoint of version ", 2));
    ::kill(broken_off->pid(), SIGKILL);
    CHECK(broken_off->nothing_left(5s));
  }
  auto const again = start("again", {"--checkpoint_steps=7"});
  CHECK(ended(*again, "again") == undisturbed);
  CHECK(has(again->log(), "going on from "));
  // Another number of minibatches to a step is another training.
  job::run four(replicas(4, {"--fixed_global_batch", "--deterministic", "--num_threads=1", "--num_epochs=3",
                             "--output=" + dir / "four"}));
  CHECK(four.wait() == 0);
  CHECK(slurp(dir / "four/model.safetensors") != slurp(dir / "whole/model.safetensors"));
}

TEST_CASE("a fixed global batch of a model of several buckets, in half the bytes: the same bits again") {
  job::scratch const dir;
  for (bool const killed : {false, true}) {
    std::string const name = killed ? "killed" : "whole";
    job::run j(replicas(3, {"--fixed_global_batch", "--deterministic", "--num_threads=1", "--num_epochs=2",
                            "--gradients=bfloat16", "--output=" + dir / name}),
               {.env = {{"TINY_WIDE", "1"}}});
    if (killed) {
      reach_middle(j, 8);
      pid_t const victim = j.find("worker", 1);
      REQUIRE(victim);
      ::kill(victim, SIGKILL);
    }
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "worker 3 joined") == killed);
  }
  std::string const model = slurp(dir / "whole/model.safetensors");
  CHECK(model.size() > 2'000'000 * sizeof(float));
  CHECK(slurp(dir / "killed/model.safetensors") == model);
}
