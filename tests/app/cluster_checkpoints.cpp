// SPDX-License-Identifier: Apache-2.0
// Jobs with servers that go on from checkpoints.
#include <memory>

#include "app/tiny_job.hpp"

namespace cluster_checkpoints_test {

using namespace tiny;

TEST_CASE("what any number of servers wrote, any number restores: predictions are the same bits") {
  job::scratch const dir;
  CHECK(job::run(cluster(4, 1, {"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"})).wait() == 0);
  lines const from{"--checkpoint_dir_for_init=" + dir / "checkpoints/version-128", "--minibatch_size=32",
                   "--num_minibatches_per_task=4"};
  std::string wanted, metrics;
  for (lines const& how :
       {lines{}, {"--num_ps_pods=1", "--num_workers=1"}, {"--num_ps_pods=3", "--num_workers=2"}}) {
    CAPTURE(how);
    lines predict{"predict", "--prediction_data=" + job::data().validation,
                  "--prediction_outputs=" + dir / "out"},
        evaluate{"evaluate", "--validation_data=" + job::data().validation};
    for (lines* line : {&predict, &evaluate}) {
      line->insert(line->end(), from.begin(), from.end());
      line->insert(line->end(), how.begin(), how.end());
    }
    std::filesystem::remove_all(dir / "out");
    job::run p(predict);
    CHECK(p.wait() == 0);
    CHECK(p.nothing_left());
    CAPTURE(p.log());
    std::string const found = slurp(dir / "out/predictions.csv");
    CHECK(count(found, "\n") == 1 + 512);
    if (wanted.empty()) wanted = found;
    CHECK(found == wanted);

    job::run e(evaluate);
    CHECK(e.wait() == 0);
    CHECK(e.nothing_left());
    CAPTURE(e.log());
    auto const at = e.log().find("Evaluation metrics[v=128]: {'accuracy': ");
    REQUIRE(at != std::string::npos);
    std::string const line = e.log().substr(at, e.log().find('\n', at) - at);
    if (metrics.empty()) metrics = line;
    CHECK(line == metrics);
    CHECK(last_accuracy(line) > 0.8);
  }
  CHECK(count(wanted, "\n") == 1 + 512);
  CHECK(count(wanted, ",") == 5 * (1 + 512));
}

TEST_CASE("a job goes on from its checkpoints, with another number of servers if need be") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  CHECK(job::run(cluster(3, 2, {checkpoints, "--num_epochs=1"})).wait() == 0);
  job::run second(cluster(2, 2, {checkpoints, "--num_epochs=2"}));
  CHECK(second.wait() == 0);
  std::string const log = second.log();
  CAPTURE(log);
  CHECK(has(log, "going on from " + dir / "checkpoints/version-64"));
  CHECK(count(log, " completed, ") == 16);
  CHECK_FALSE(has(log, "Starting epoch 0"));
  check_ledgers(dir / "checkpoints", 2, 2);
}

TEST_CASE("a job that was stopped goes on from its newest checkpoint, to the last record") {
  job::scratch const dir;
  lines const flags{"--use_async", "--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints",
                    "--checkpoint_steps=16"};
  {
    job::run j(cluster(2, 2, flags), slow);
    REQUIRE(j.says("Checkpoint of version ", 2));
    ::kill(j.pid(), SIGKILL);
    CHECK(j.nothing_left(5s));
  }
  job::run j(cluster(2, 2, flags));
  CHECK(j.wait() == 0);
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(has(log, "going on from "));
  check_account(log, 2);
  check_ledgers(dir / "checkpoints", 2, 2);
}

}  // namespace cluster_checkpoints_test
