// SPDX-License-Identifier: Apache-2.0
// Whole jobs whose optimiser needs whole variables.
#include <memory>

#include "app/tiny_job.hpp"

namespace whole_optimizers_test {

using namespace tiny;

namespace {

struct trained {
  int code;
  std::string log, model;
};

/// A job with LAMB or Muon, to its end.
trained run(std::string const& by, std::string const& output, lines flags) {
  flags.insert(flags.end(), {"--output=" + output, "--deterministic", "--num_threads=1", "--num_epochs=3",
                             "--validation_data=" + job::data().validation, "--evaluation_steps=64"});
  job::run j(flags, {.env = {{"TINY_OPTIMIZER", by}}});
  int const code = j.wait();
  return {code, j.log(), slurp(output + "/model.safetensors")};
}

}  // namespace

TEST_CASE("jobs learn with LAMB and Muon in every strategy, with the same bits for any number of servers") {
  for (std::string const by : {"lamb", "muon"}) {
    CAPTURE(by);
    job::scratch const dir;
    int number = 0;
    auto const model = [&](lines const& flags) {
      auto const t = run(by, dir / "out-" + std::to_string(++number), flags);
      CAPTURE(t.log);
      CHECK(t.code == 0);
      check_account(t.log, 3);
      CHECK(last_accuracy(t.log) > 0.85);
      return t.model;
    };
    auto const one = model(cluster(1, 1));
    CHECK(one.size() > 259 * sizeof(float));
    CHECK(model(cluster(3, 1)) == one);
    CHECK(model(cluster(7, 1, {"--moving_average=0.001"})) != one);
    CHECK(model(train()) == one);
    model(cluster(2, 2, {"--use_async", "--get_model_steps=2"}));
    auto const both = model(replicas(2, {"--fixed_global_batch"}));
    CHECK(model(replicas(2, {"--fixed_global_batch"})) == both);
  }
}

TEST_CASE("servers follow a schedule that is a share of the training, as a program by itself does") {
  job::scratch const dir;
  auto const by_itself = run("planned", dir / "a", train());
  auto const by_servers = run("planned", dir / "b", cluster(2, 1));
  CAPTURE(by_servers.log);
  CHECK(by_itself.code == 0);
  CHECK(by_servers.code == 0);
  check_account(by_servers.log, 3);
  CHECK(by_servers.model == by_itself.model);
}

TEST_CASE("a job with whole variables goes on with another number of servers") {
  for (std::string const by : {"lamb", "muon"}) {
    job::scratch const dir;
    lines const first{"--checkpoint_dir=" + dir / "c", "--max_step=64"},
        rest{"--checkpoint_dir=" + dir / "c"};
    auto const begun = run(by, dir / "a", cluster(3, 1, first));
    CAPTURE(begun.log);
    CHECK(begun.code == 0);
    auto const more = run(by, dir / "b", cluster(2, 1, rest));
    CAPTURE(more.log);
    CHECK(more.code == 0);
    CHECK(has(more.log, "going on from " + dir / "c/version-64"));
    CHECK(more.model == run(by, dir / "whole", train()).model);
  }
}

}  // namespace whole_optimizers_test
