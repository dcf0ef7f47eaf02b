// SPDX-License-Identifier: Apache-2.0
#include "edl/job/config/resolve.hpp"

#include <doctest/doctest.h>

#include "job/config/resolved.hpp"
#include "text.hpp"

namespace resolve_test {

namespace {

edl::job job(std::vector<std::string> const& line) { return resolved(line).job; }

}  // namespace

TEST_CASE("defaults are those of the published flags") {
  auto const j = job({"train", "--training_data=d"});
  CHECK(j.data.minibatch_size == 64);
  CHECK(j.data.num_minibatches_per_task == 8);
  CHECK(j.data.num_epochs == 1);
  CHECK(j.observe.log_loss_steps == 100);
  CHECK(j.training.grads_to_wait == 1);
  CHECK_FALSE(j.training.use_async);
  CHECK(j.strategy == edl::strategy::local);
  CHECK(j.name == "mnist");
}

TEST_CASE("the tutorials' flags are understood") {
  auto const j = job({"train", "--training_data=/data/mnist/train", "--validation_data=/data/mnist/test",
                      "--num_epochs=2", "--minibatch_size=64", "--num_minibatches_per_task=2",
                      "--num_ps_pods=1", "--num_workers=1", "--evaluation_steps=50", "--job_name=test-mnist",
                      "--distribution_strategy=ParameterServerStrategy"});
  CHECK(j.strategy == edl::strategy::parameter_server);
  CHECK(j.processes.num_workers == 1);
  CHECK(j.evaluation.evaluation_steps == 50);
  CHECK(j.data.records_per_task() == 128);
  CHECK(job({"train", "--training_data_dir=d", "--evaluation_data_dir=e"}).data.validation_data == "e");
  CHECK(job({"train", "--training_data=d", "--records_per_task=640"}).data.num_minibatches_per_task == 10);
}

TEST_CASE("a moving average keeps less than all, and is not made by GPUs that sum") {
  CHECK(job({"train", "--training_data=d"}).training.moving_average == 0);
  CHECK(job({"train", "--training_data=d", "--max_damaged=0.5"}).data.max_damaged == 0.5f);
  for (char const* bad : {"1.5", "-1", "nan", "inf"})
    CHECK(refusal({"train", "--training_data=d", std::string("--max_damaged=") + bad}) ==
          "--max_damaged=" + std::string(bad) + ": expected a number from 0 to 1");
  CHECK(refusal({"train", "--training_data=d", "--clip_norm=nan"}) ==
        "--clip_norm=nan: expected a number from 0 to 3.4e+38");
  CHECK(job({"train", "--training_data=d", "--moving_average=0.999"}).training.moving_average == 0.999f);
  CHECK(refusal({"train", "--training_data=d", "--moving_average=1"}) ==
        "--moving_average=1: expected at least 0 and less than 1");
  CHECK(contains(refusal({"train", "--training_data=d", "--moving_average=-0.1"}), "--moving_average"));
  CHECK(contains(refusal({"train", "--training_data=d", "--distribution_strategy=AllreduceStrategy",
                          "--allreduce_transport=nccl", "--moving_average=0.9"}),
                 "leave out --moving_average"));
}

TEST_CASE("what a job reads and what it leaves may lie in buckets, and nothing else") {
  auto const j = job({"train", "--training_data=s3://b/k", "--data_cache_size=1Gi", "--output=s3://b/m",
                      "--checkpoint_dir=s3://b/d/", "--checkpoint_dir_for_init=s3://b/c",
                      "--tensorboard_log_dir=s3://b/logs"});
  CHECK(j.checkpoints.checkpoint_dir == "s3://b/d");
  for (char const* none : {"s3://", "s3:///"})
    CHECK(job({"train", "--training_data=d", std::string("--checkpoint_dir=") + none})
              .checkpoints.checkpoint_dir == "s3://");
  CHECK(j.data.data_cache_size == "1Gi");
  CHECK(j.outputs.output == "s3://b/m");
  CHECK(j.checkpoints.checkpoint_dir_for_init == "s3://b/c");
  CHECK(j.observe.tensorboard_log_dir == "s3://b/logs");
  for (std::string const flag :
       {"data_cache=", "profile=", "kernel_cache=", "log_file_path=", "preemption_notice=file:"})
    CHECK(contains(refusal({"train", "--training_data=d", "--" + flag + "s3://b/c"}),
                   "--" + flag +
                       "s3://b/c: only records, checkpoints, models, predictions and event files "
                       "may lie in buckets: name a path"));
  CHECK(contains(refusal({"train", "--training_data=d", "--output=m", "--export_onnx=s3://b/c"}),
                 "--export_onnx=s3://b/c: no bucket is written: name a file"));
  CHECK(contains(refusal({"predict", "--prediction_data=d", "--checkpoint_dir_for_init=c",
                          "--prediction_outputs=s3://b/p*"}),
                 "--prediction_outputs=s3://b/p*: write it without *"));
  CHECK(contains(refusal({"train", "--training_data=d", "--data_cache_size=much"}),
                 "--data_cache_size=much: "));
}

TEST_CASE("workers or servers ask for a cluster of processes") {
  auto const j = job({"train", "--training_data=d", "--num_workers=4"});
  CHECK(j.strategy == edl::strategy::parameter_server);
  CHECK(j.processes.num_ps_pods == 1);
  CHECK(contains(refusal({"train", "--training_data=d", "--num_workers=4", "--distribution_strategy=Local"}),
                 "--num_workers"));
}

TEST_CASE("asynchronous and synchronous training settle what belongs to the other") {
  CHECK(job({"train", "--training_data=d", "--use_async", "--grads_to_wait=4"}).training.grads_to_wait == 1);
  CHECK(job({"train", "--training_data=d", "--get_model_steps=4"}).training.get_model_steps == 1);
  CHECK(job({"train", "--training_data=d", "--use_async", "--get_model_steps=4"}).training.get_model_steps ==
        4);
}

TEST_CASE("rounds of a worker's own steps are pushed at once, to servers") {
  std::vector<std::string> const line{"train", "--training_data=d", "--num_workers=2", "--outer_steps=50"};
  auto const with = [&](std::string const& flag) {
    auto more = line;
    more.push_back(flag);
    return refusal(more);
  };
  auto const j = job(line);
  CHECK(j.training.use_async);
  CHECK(j.training.get_model_steps == 50);
  for (char const* other : {"--distribution_strategy=AllreduceStrategy", "--grads_to_wait=2",
                            "--sync_version_tolerance=1", "--get_model_steps=4", "--verify_gradients=0.01"})
    CHECK(contains(with(other), "--outer_steps"));
  CHECK(contains(with("--evaluation_steps=49"), "--evaluation_steps=49"));
  CHECK(contains(with("--checkpoint_steps=49"), "--checkpoint_steps=49"));
  CHECK(contains(with("--outer_momentum=1"), "--outer_momentum=1"));
  CHECK(contains(with("--outer_learning_rate=0"), "--outer_learning_rate=0"));
  auto const one = job({"train", "--training_data=d", "--outer_steps=50", "--distribution_strategy=Local"});
  CHECK(one.training.outer_steps == 1);
}

TEST_CASE("sums that NCCL does not make are refused to who insists on it") {
  std::vector<std::string> const line{"train", "--training_data=d",
                                      "--distribution_strategy=AllreduceStrategy",
                                      "--allreduce_transport=nccl"};
  CHECK(job(line).training.allreduce_transport == edl::allreduce_transport::nccl);
  for (char const* with : {"--fixed_global_batch", "--gradients=bfloat16", "--freeze"}) {
    auto more = line;
    more.emplace_back(with == std::string("--freeze") ? "--freeze=dense*" : with);
    CHECK(contains(refusal(more), with));
  }
  CHECK(contains(refusal({"train", "--training_data=d", "--allreduce_transport=tcp"}), "tcp"));
}

TEST_CASE("a share of gradients that are verified is small") {
  CHECK(job({"train", "--training_data=d", "--verify_gradients=0.01"}).training.verify_gradients == 0.01f);
  for (char const* share : {"0.2", "1", "nan", "1e-12"})
    CHECK(contains(refusal({"train", "--training_data=d", std::string("--verify_gradients=") + share}),
                   "--verify_gradients"));
}

TEST_CASE("rates for parts are names and factors") {
  CHECK(job({"train", "--training_data=d", "--rates=conv2d*=0.1,dense=2"}).training.rates ==
        "conv2d*=0.1,dense=2");
  for (char const* rates : {"--rates=conv2d*", "--rates=conv2d*=0"})
    CHECK(contains(refusal({"train", "--training_data=d", rates}), "--freeze leaves variables as they are"));
}

TEST_CASE("servers keep a range at least, and a part of it in as many copies as there are servers") {
  auto const j = job({"train", "--training_data=d", "--num_ps_pods=2", "--ps_replicas=2"});
  CHECK(j.processes.ps_ranges == 2);
  CHECK(j.processes.num_workers == 2);
  CHECK(contains(refusal({"train", "--training_data=d", "--num_workers=2", "--ps_replicas=2"}),
                 "--num_ps_pods=2"));
  CHECK(
      contains(refusal({"train", "--training_data=d", "--num_ps_pods=3", "--ps_ranges=2"}), "--ps_ranges=2"));
  CHECK(job({"train", "--training_data=d", "--distribution_strategy=AllreduceStrategy", "--ps_replicas=2"})
            .processes.ps_replicas == 1);
}

TEST_CASE("a share of the training data is a number below 1, and stands in the place of other records") {
  CHECK(job({"train", "--training_data=d"}).data.validation_split == 0);
  CHECK(job({"train", "--training_data=d", "--validation_split=0.25"}).data.validation_split == 0.25);
  CHECK(job({"train", "--training_data=d", "--validation_split=0.25", "--evaluation_steps=5"})
            .evaluation.evaluation_steps == 5);
  for (char const* share : {"1", "-0.1", "x", "0.1x", "", "nan"})
    CHECK(contains(refusal({"train", "--training_data=d", std::string("--validation_split=") + share}),
                   "--validation_split"));
  CHECK(contains(refusal({"train", "--training_data=d", "--validation_data=e", "--validation_split=0.1"}),
                 "leave out --validation_data"));
}

TEST_CASE("int8 is refused to who trains, and to who insists on a GPU") {
  CHECK(contains(refusal({"train", "--training_data=d", "--precision=int8"}), "evaluate and predict"));
  std::vector<std::string> line{"evaluate", "--validation_data=d", "--checkpoint_dir_for_init=c",
                                "--precision=int8"};
  CHECK(refusal(line) == "accepted");
  line.push_back("--device=cuda");
  CHECK(contains(refusal(line), "leave out --device=cuda"));
}

TEST_CASE("an array of predictions has no columns of the records") {
  std::vector<std::string> line{"predict", "--prediction_data=d", "--checkpoint_dir_for_init=c",
                                "--prediction_columns=id,name", "--prediction_format=jsonl"};
  CHECK(job(line).outputs.prediction_columns == "id,name");
  auto wrong = line;
  wrong[3] = "--prediction_columns=id,,";
  CHECK(refusal(wrong) == "--prediction_columns=id,,: a part of the list is empty");
  CHECK(job(line).outputs.prediction_format == edl::prediction_format::jsonl);
  line.back() = "--prediction_format=npy";
  CHECK(contains(refusal(line), "an array holds only the model's numbers; use jsonl"));
}

}  // namespace resolve_test
