// SPDX-License-Identifier: Apache-2.0
// --dry_run and --overfit_batches, which both train on a few records only.
#include "edl/job/train/local/dry_run.hpp"

#include "job/train/files.hpp"

namespace dry_run_test {

using namespace job;

namespace {

lines const strategies[] = {
    {},
    {"--num_ps_pods=2", "--num_workers=2"},
    {"--num_ps_pods=1", "--num_workers=2", "--grads_to_wait=2"},
    {"--distribution_strategy=AllreduceStrategy", "--num_workers=2"},
    {"--distribution_strategy=AllreduceStrategy", "--num_workers=3", "--fixed_global_batch"}};

}  // namespace

TEST_CASE("a dry run tries everything, says so, and leaves nothing") {
  for (lines const& how : strategies)
    for (bool const validates : {false, true}) {
      scratch const dir;
      for (char const* name : {"tmp", "run"}) std::filesystem::create_directory(dir / name);
      lines flags{"--dry_run", "--log_level=INFO", "--checkpoint_dir=" + dir / "c", "--output=" + dir / "o"};
      if (validates) flags.push_back("--validation_data=" + data().validation);
      run j(train(with(flags, how)), {.env = {{"TMPDIR", dir / "tmp"}, {"XDG_RUNTIME_DIR", dir / "run"}}});
      CHECK(j.wait() == 0);
      CAPTURE(j.log());
      CHECK(j.nothing_left());
      CHECK(has(j.log(), "dry run: everything works, and nothing is kept\n"));
      CHECK(has(j.log(), " records read of " + data().training + "\n"));
      CHECK(has(j.log(), "  step: "));
      CHECK_FALSE(has(j.log(), "  step: 0"));
      CHECK(has(j.log(), "  evaluation: accuracy "));
      CHECK(has(j.log(), " over 32 records of " + (validates ? data().validation : data().training) + "\n"));
      CHECK(has(j.log(), "  checkpoint: version "));
      CHECK(has(j.log(), "  exported model: version "));
      CHECK_FALSE(has(j.log(), "[INFO]"));
      CHECK(names_in(dir / "tmp").empty());
      CHECK_FALSE(std::filesystem::exists(dir / "c"));
      CHECK_FALSE(std::filesystem::exists(dir / "o"));
    }
}

TEST_CASE("a dry run tells the price of a bound of memory") {
  for (lines const& how : {strategies[0], strategies[1]}) {
    run j(train(with({"--dry_run", "--memory_budget=1000"}, how)));
    CHECK(j.wait() == 0);
    CHECK(has(j.log(), "  memory: nothing has to be computed again for --memory_budget\n"));
  }
}

TEST_CASE("a dry run that fails says why, and leaves nothing either") {
  for (lines const& how : {strategies[0], strategies[1]}) {
    scratch const dir;
    for (char const* name : {"tmp", "run"}) std::filesystem::create_directory(dir / name);
    run j(train(with({"--dry_run", "--log_level=INFO"}, how)),
          {.env = {{"TMPDIR", dir / "tmp"}, {"XDG_RUNTIME_DIR", dir / "run"}, {"TINY_FAILS", "throw"}}});
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), "this worker was told to fail"));
    CHECK_FALSE(has(j.log(), "everything works"));
    CHECK(names_in(dir / "tmp").empty());
  }
}

TEST_CASE("a role that somebody has started by hand cannot take part in a dry run") {
  run j(train({"--dry_run"}),
        {.env = {{"EDL_ROLE", "master"}, {"EDL_JOB_TOKEN", "a secret of some length"}}});
  CHECK(j.wait() == 1);
  CHECK(has(j.log(), "--dry_run works on one machine, by one command"));
}

TEST_CASE("a job of a few minibatches has only them, in each epoch") {
  for (lines const& how : {strategies[0], strategies[1], strategies[3]}) {
    run j(train(with({"--overfit_batches=2", "--num_epochs=3"}, how)));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    for (char const* epoch : {"0", "1", "2"})
      CHECK(has(j.log(), "Epoch " + std::string(epoch) +
                             ": 64 records in the data set, 64 counted once, 0 skipped as damaged, 0 left"));
  }
}

TEST_CASE("what a dry run writes goes with it") {
  std::string path;
  {
    edl::train::dry_run_directory const d;
    path = d.path();
    std::filesystem::create_directories(path + "/model");
    std::ofstream(path + "/model/file") << "text";
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a dry run has a minibatch for each worker, and for each gradient of a step") {
  edl::job j;
  j.data.training_data = "data", j.processes.num_workers = 2, j.training.grads_to_wait = 5,
  j.checkpoints.checkpoint_dir = "c", j.data.max_step = 9;
  j.observe.tensorboard_log_dir = "t", j.outputs.export_onnx = "m.onnx";
  edl::train::make_dry(j, "/tmp/d");
  CHECK(j.data.overfit_batches == 5);
  CHECK(j.data.num_epochs == 1);
  CHECK(j.data.max_step == 0);
  CHECK(j.data.validation_data == "data");
  CHECK(j.checkpoints.checkpoint_dir == "/tmp/d/checkpoints");
  CHECK(j.outputs.output == "/tmp/d/model");
  CHECK(j.observe.tensorboard_log_dir == "/tmp/d/tensorboard");
  CHECK(j.outputs.export_onnx == "/tmp/d/model.onnx");
  CHECK(j.compute.profile.empty());
}

}  // namespace dry_run_test
