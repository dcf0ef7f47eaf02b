// SPDX-License-Identifier: Apache-2.0
// Whole jobs by all-reduce: a master and workers with a copy of the model each, each a process.
#include <memory>

#include "app/tiny_job.hpp"

namespace allreduce_test {

using namespace tiny;

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

TEST_CASE("what servers wrote a job without servers goes on with, and the other way round") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  CHECK(job::run(train({checkpoints, "--num_epochs=1", "--num_ps_pods=3", "--num_workers=2"})).wait() == 0);
  {
    // A second one in its middle: the servers' ledgers differ.
    job::run j(train({checkpoints, "--num_epochs=9", "--checkpoint_steps=7", "--num_ps_pods=3",
                      "--num_workers=3", "--use_async"}),
               held);
    REQUIRE(j.says("Checkpoint of version ", 2));
    ::kill(j.pid(), SIGKILL);
    CHECK(j.nothing_left(5s));
  }
  {
    job::run j(replicas(2, {checkpoints, "--num_epochs=9", "--checkpoint_steps=2"}), held);
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
    check_ledgers(dir / "checkpoints", 3, 2);
  }
  job::run j(replicas(2, {checkpoints, "--num_epochs=4"}));
  check_end(j, dir / "checkpoints", 4);
  CHECK(count(j.log(), " completed, ") == 16);
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
  lines const flags{"--training_data=" + dir / "train", "--num_epochs=3", "--skip_damaged",
                    "--max_damaged=1"};
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
  CHECK(j.says("worker 2 joined"));
  j.open_gate();
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
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
    std::string const all = slurp(dir / "out/predictions.csv");
    CHECK(count(all, "\n") == 1 + 512);
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

TEST_CASE("who joins copies the model while the others go on, makes their steps, and has their bits") {
  for (bool const fixed : {false, true}) {
    CAPTURE(fixed);
    job::scratch const dir;
    std::string const name = "joined-" + std::to_string(::getpid());
    lines flags{"--num_epochs=6", "--num_threads=1", "--job_name=" + name,
                "--checkpoint_dir=" + dir / "checkpoints"};
    // Copies are compared at one version in ten; with lanes another test compares.
    flags.push_back(fixed ? "--fixed_global_batch" : "--verify_gradients=0.1");
    job::run j(replicas(2, flags), slow);
    reach_middle(j, 2);
    CHECK(job::run({"scale", "--job_name=" + name, "--num_workers=3"}).wait() == 0);
    check_end(j, dir / "checkpoints", 6);
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(has(log, " steps since, while the others went on"));
    CHECK(has(log, "World 2: 3 workers (0, 1, 2 (new)) from version "));
    CHECK(count(log, "] World ") == 2);
    CHECK_FALSE(has(log, "cannot follow"));
    CHECK_FALSE(has(log, "of the model"));  // that one differs
  }
}

}  // namespace allreduce_test
