// SPDX-License-Identifier: Apache-2.0
// Whole jobs whose workers' GPUs sum among themselves.
#include <cstdlib>

#include "app/job.hpp"
#include "cuda/gpus.hpp"
#include "edl/base/checkpoint/directory.hpp"

namespace allreduce_test {

using job::count, job::has, job::train;

namespace {

using words = std::vector<std::string>;

job::options small(job::environment env = {}) {
  char const* const from_environment = std::getenv("EDL_TINY");
  return {.env = std::move(env), .program = from_environment ? from_environment : EDL_TINY};
}

double last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
}

words replicas(int workers, words more = {}) {
  more.insert(more.end(), {"--device=cuda", "--distribution_strategy=AllreduceStrategy",
                           "--num_workers=" + std::to_string(workers)});
  return train(more);
}

void check_account(std::string const& log, int epochs) {
  for (int e = 0; e < epochs; ++e)
    CHECK(has(log, "Epoch " + std::to_string(e) +
                       ": 2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left"));
}

}  // namespace

TEST_CASE("two workers' GPUs sum: evaluations, checkpoints and the model are made of what they hold") {
  if (gpus_or_skip(2).empty()) return;
  job::scratch const dir;
  job::run j(
      replicas(2, {"--num_epochs=3", "--validation_data=" + job::data().validation, "--evaluation_steps=20",
                   "--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=30",
                   "--output=" + dir / "model", "--allreduce_transport=nccl"}),
      small({{"TMPDIR", dir / ""}}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "GPUs sum by NCCL "));
  CHECK(last_accuracy(j.log()) > 0.8);
  CHECK(count(j.log(), "Evaluation metrics[v=20]: ") == 1);
  CHECK_FALSE(has(j.log(), "[WARNING]"));
  CHECK_FALSE(has(j.log(), "[ERROR]"));
  check_account(j.log(), 3);
  CHECK(std::filesystem::exists(dir / "model/model.safetensors"));
  // What the GPUs have trained, processors go on with.
  job::run after(train({"--device=cpu", "--num_epochs=4", "--validation_data=" + job::data().validation,
                        "--checkpoint_dir=" + dir / "checkpoints"}),
                 small());
  CHECK(after.wait() == 0);
  CAPTURE(after.log());
  CHECK(has(after.log(), "going on from "));
  CHECK(last_accuracy(after.log()) > 0.8);
}

TEST_CASE("one worker's GPU gives the bits that its host gives") {
  if (gpus_or_skip(1).empty()) return;
  job::scratch const dir;
  auto const go = [&](std::string const& transport) {
    job::run j(replicas(1, {"--num_epochs=2", "--deterministic", "--output=" + dir / transport,
                            "--allreduce_transport=" + transport}),
               small({{"TMPDIR", dir / ""}}));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK((transport == "ring" || has(j.log(), "sum by NCCL")));
    check_account(j.log(), 2);
    return job::slurp((dir / transport) + "/model.safetensors");
  };
  CHECK(go("ring") == go("nccl"));
}

TEST_CASE(
    "a worker that is killed while GPUs sum: the others form a new world, and no record is lost or "
    "repeated") {
  if (gpus_or_skip(2).empty()) return;
  job::scratch const dir;
  job::run j(replicas(2, {"--num_epochs=6", "--checkpoint_dir=" + dir / "checkpoints"}),
             small({{"TINY_DELAY_US", "900"}, {"TMPDIR", dir / ""}, {"EDL_CUDA_DOUBLE_DEVICES", "2"}}));
  REQUIRE(j.says("GPUs sum by NCCL "));
  REQUIRE(j.says(" completed, ", 4));
  pid_t const victim = j.find("worker", 1);
  REQUIRE(victim > 0);
  ::kill(victim, SIGKILL);
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "worker 1 is lost"));
  CHECK(count(j.log(), "GPUs sum by NCCL ") >= 2);
  check_account(j.log(), 6);
  auto const newest = edl::checkpoint::newest_valid(dir / "checkpoints");
  REQUIRE(newest);
  job::run audit({"audit", *newest}, small());
  CHECK(audit.wait() == 0);
}

TEST_CASE("where GPUs cannot sum, the hosts do, and the log says why; who insists is told") {
  if (gpus_or_skip(1).empty()) return;
  job::scratch const dir;
  struct lack {
    job::environment env;
    std::string why;
    words more;
  };
  for (auto const& [env, why, more] :
       {lack{{{"EDL_CUDA_DOUBLE_DEVICES", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}}, "shares its GPU", {}},
        lack{{{"EDL_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}}, "NCCL does not load: ", {}},
        lack{{{"EDL_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}},
             "--fixed_global_batch",
             {"--fixed_global_batch"}},
        lack{{{"EDL_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}},
             "--allreduce_transport=ring",
             {"--allreduce_transport=ring"}}}) {
    CAPTURE(why);
    job::run j(replicas(2, more), small(env));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "the workers' hosts sum, not their GPUs, because of worker "));
    CHECK(has(j.log(), why));
    check_account(j.log(), 1);
  }
  job::run insists(replicas(2, {"--allreduce_transport=nccl", "--relaunch_on_worker_failure=0"}),
                   small({{"EDL_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}}));
  CHECK(insists.wait() == 1);
  CAPTURE(insists.log());
  CHECK(has(insists.log(), "--allreduce_transport=nccl is impossible because of worker "));
}

TEST_CASE("an NCCL that does not join GPUs is given up, and the job goes on without") {
  if (gpus_or_skip(2).empty()) return;
  if (!std::getenv("EDL_CUDA_LIBRARY") || !has(std::getenv("EDL_CUDA_LIBRARY"), "double")) {
    MESSAGE("skipped: only the double refuses");
    return;
  }
  job::scratch const dir;
  job::run j(replicas(2), small({{"EDL_NCCL_DOUBLE", "refuses"}, {"TMPDIR", dir / ""}}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "NCCL: joining GPUs: an error of the double of NCCL"));
  check_account(j.log(), 1);
}

}  // namespace allreduce_test
