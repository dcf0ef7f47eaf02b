// SPDX-License-Identifier: Apache-2.0
#include "edl/app/flags.hpp"

#include <doctest/doctest.h>

#include "app/refusal.hpp"

using edl::app::parse;

namespace {

edl::job job(std::vector<std::string> line) { return parse("mnist", line).run.value().job; }

}  // namespace

TEST_CASE("defaults are those of the published flags") {
  auto const j = job({"train", "--training_data=d"});
  CHECK(j.minibatch_size == 64);
  CHECK(j.num_minibatches_per_task == 8);
  CHECK(j.num_epochs == 1);
  CHECK(j.log_loss_steps == 100);
  CHECK(j.grads_to_wait == 1);
  CHECK_FALSE(j.use_async);
  CHECK(j.how == edl::strategy::local);
  CHECK(j.name == "mnist");
}

TEST_CASE("the tutorials' flags are understood") {
  auto const j = job({"train", "--training_data=/data/mnist/train", "--validation_data=/data/mnist/test",
                      "--num_epochs=2", "--minibatch_size=64", "--num_minibatches_per_task=2",
                      "--num_ps_pods=1", "--num_workers=1", "--evaluation_steps=50", "--job_name=test-mnist",
                      "--distribution_strategy=ParameterServerStrategy"});
  CHECK(j.how == edl::strategy::parameter_server);
  CHECK(j.num_workers == 1);
  CHECK(j.evaluation_steps == 50);
  CHECK(j.records_per_task() == 128);
  CHECK(job({"train", "--training_data_dir=d", "--evaluation_data_dir=e"}).validation_data == "e");
  CHECK(job({"train", "--training_data=d", "--records_per_task=640"}).num_minibatches_per_task == 10);
}

TEST_CASE("a boolean flag stands alone or has a value") {
  CHECK(job({"train", "--training_data=d", "--use_async"}).use_async);
  CHECK(job({"train", "--use_async", "--training_data=d"}).use_async);
  CHECK(job({"train", "--training_data=d", "--use_async=Yes"}).use_async);
  CHECK_FALSE(job({"train", "--training_data=d", "--use_async=false"}).use_async);
  CHECK(contains(refusal({"train", "--training_data=d", "--use_async=maybe"}), "--use_async"));
}

TEST_CASE("workers or servers ask for a cluster of processes") {
  auto const j = job({"train", "--training_data=d", "--num_workers=4"});
  CHECK(j.how == edl::strategy::parameter_server);
  CHECK(j.num_ps_pods == 1);
  CHECK(contains(refusal({"train", "--training_data=d", "--num_workers=4", "--distribution_strategy=Local"}),
                 "--num_workers"));
}

TEST_CASE("what cannot be is refused by name, with the way out") {
  CHECK(contains(refusal({"train", "--training_data=d", "--minibach_size=3"}),
                 "did you mean --minibatch_size?"));
  CHECK(contains(refusal({"train", "--training_data=d", "--minibatch_size=zero"}), "--minibatch_size"));
  CHECK(contains(refusal({"train", "--training_data=d", "--minibatch_size=0"}), "--minibatch_size"));
  CHECK(contains(refusal({"train", "--training_data=d", "--minibatch_size=99999999999999999999"}),
                 "--minibatch_size"));
  CHECK(contains(refusal({"train"}), "--training_data"));
  CHECK(contains(refusal({"train", "--trainig_data=d"}), "did you mean --training_data?"));
  CHECK(contains(refusal({"trian"}), "did you mean train?"));
  CHECK(contains(refusal({}), "a command is missing: train, evaluate, predict"));
  CHECK(contains(refusal({}), "--help"));
  CHECK(contains(refusal({"train", "--training_data=d", "--use_async=maybe"}),
                 "--use_async=maybe: expected true or false"));
  CHECK(contains(refusal({"train", "--training_data=d", "--seed=1", "--seed=2"}), "--seed is given twice"));
  CHECK(contains(refusal({"train", "--training_data=d", "--image_name=x"}), "--image_name"));
  CHECK(contains(refusal({"train", "--training_data=d", "--model_def=x"}), "this binary is the model"));
  CHECK(contains(refusal({"train", "--training_data=d", "--checkpoint_steps=5"}), "--checkpoint_dir"));
  CHECK(contains(refusal({"train", "--training_data=d", "--evaluation_steps=5"}), "--validation_data"));
  CHECK(contains(refusal({"train", "--training_data=d", "--records_per_task=65"}),
                 "multiple of --minibatch_size=64"));
  CHECK(contains(refusal({"evaluate", "--validation_data=d"}), "--checkpoint_dir_for_init"));
  CHECK(contains(refusal({"train", "--training_data=d", "--distribution_strategy=Ring"}), "Ring"));
}

TEST_CASE("asynchronous and synchronous training settle what belongs to the other") {
  CHECK(job({"train", "--training_data=d", "--use_async", "--grads_to_wait=4"}).grads_to_wait == 1);
  CHECK(job({"train", "--training_data=d", "--get_model_steps=4"}).get_model_steps == 1);
  CHECK(job({"train", "--training_data=d", "--use_async", "--get_model_steps=4"}).get_model_steps == 4);
}

TEST_CASE("help names every flag and exits 0") {
  auto const help = parse("mnist", {"train", "--help"});
  CHECK_FALSE(help.run);
  CHECK(help.code == 0);
  for (char const* flag : {"--training_data", "--grads_to_wait", "--checkpoint_dir", "--seed", "--log_level"})
    CHECK(contains(help.text, flag));
  CHECK(contains(parse("mnist", {"--version"}).text, "0.1.0"));
}

TEST_CASE("data is a command of its own") {
  auto const run = parse("mnist", {"data", "--from=a", "--to=b", "--records_per_shard=100"}).run.value();
  REQUIRE(run.data);
  CHECK(run.data->records_per_shard == 100);
  CHECK(run.data->compressor == "snappy");
}

TEST_CASE("sums that NCCL does not make are refused to who insists on it") {
  std::vector<std::string> const line{"train", "--training_data=d",
                                      "--distribution_strategy=AllreduceStrategy",
                                      "--allreduce_transport=nccl"};
  CHECK(job(line).allreduce_transport == "nccl");
  for (char const* with : {"--fixed_global_batch", "--gradients=bfloat16"}) {
    auto more = line;
    more.emplace_back(with);
    CHECK(contains(refusal(more), with));
  }
  CHECK(contains(refusal({"train", "--training_data=d", "--allreduce_transport=tcp"}), "tcp"));
}

TEST_CASE("a number out of bounds is refused with bounds that can be read") {
  for (std::string const flag : {"seed",
                                 "max_step",
                                 "sync_version_tolerance",
                                 "evaluation_steps",
                                 "checkpoint_steps",
                                 "log_loss_steps",
                                 "keep_checkpoint_max",
                                 "records_per_task",
                                 "num_workers",
                                 "num_ps_pods",
                                 "minibatch_size",
                                 "loader_threads",
                                 "num_threads",
                                 "port",
                                 "get_model_steps",
                                 "grads_to_wait",
                                 "max_task_retries",
                                 "ps_ranges",
                                 "ps_replicas",
                                 "num_minibatches_per_task",
                                 "relaunch_on_worker_failure"})
    for (std::string const value : {"-1", "1e3", "", "99999999999999999999999", "0x10", "3.5"}) {
      std::string const said = refusal({"train", "--training_data=d", "--" + flag + "=" + value});
      CAPTURE(said);
      CHECK(contains(said, "--" + flag));
      CHECK(said.size() < 200);
      if (!value.empty()) CHECK(contains(said, "expected a whole number"));
    }
  CHECK(job({"train", "--training_data=d", "--num_epochs=-1"}).num_epochs == -1);
  CHECK(job({"train", "--training_data=d", "--seed=18446744073709551615"}).seed == ~std::uint64_t{0});
  for (std::string const fraction : {"0", "-1", "1.5", "nan", "all"}) {
    std::string const said = refusal({"data", "--from=a", "--to=b", "--fraction=" + fraction});
    CAPTURE(said);
    CHECK(contains(said, "more than 0, and at most 1"));
  }
  CHECK(contains(refusal({"scale", "--num_workers=0"}), "from 1 to 10000"));
}
