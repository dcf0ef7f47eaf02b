// SPDX-License-Identifier: Apache-2.0
// Jobs by all-reduce with a fixed global batch: the same bits, however many workers there are.
#include <memory>

#include "app/tiny_job.hpp"

namespace fixed_global_batch_test {

using namespace tiny;

namespace {

/// A job that `scale` finds, and no other test's.
std::string job_name() { return "fixed-" + std::to_string(::getpid()); }

}  // namespace

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
    CHECK(count(j.log(), "Evaluation metrics[v=64]") == 1);  // others are left out where evaluations are slow
    return slurp(dir / name + "/model.safetensors") +
           slurp(dir / name + "-c/version-64/" + newest.files.at(0).name);
  };
  auto const scaled_to = [&](std::string const& workers) {
    CHECK(job::run({"scale", "--job_name=" + job_name(), "--num_workers=" + workers}).wait() == 0);
  };
  auto const undisturbed = ended(*start("whole"), "whole");
  CHECK(undisturbed.size() > 3 * 259 * sizeof(float));
  CHECK(ended(*start("fast", {}, {}), "fast") == undisturbed);
  for (std::string const workers : {"1", "5"}) {
    CAPTURE(workers);
    auto const j = start("size-" + workers);
    REQUIRE(j->says("Starting epoch 0"));
    scaled_to(workers);
    CHECK(ended(*j, "size-" + workers) == undisturbed);
  }
  for (int const signal : {SIGKILL, SIGTERM}) {
    CAPTURE(signal);
    std::string const name = "lost-" + std::to_string(signal);
    int const victim = signal == SIGKILL ? 0 : 2;
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
               {.env = {{"TINY_WIDE", "1"}, {"TINY_DELAY_US", "900"}}});
    if (killed) {
      reach_middle(j, 8);
      pid_t const victim = j.find("worker", 1);
      REQUIRE(victim);
      ::kill(victim, SIGKILL);
      CHECK(j.says("worker 3 joined"));
    }
    j.open_gate();
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
  }
  std::string const model = slurp(dir / "whole/model.safetensors");
  CHECK(model.size() > 2'000'000 * sizeof(float));
  CHECK(slurp(dir / "killed/model.safetensors") == model);
}

}  // namespace fixed_global_batch_test
