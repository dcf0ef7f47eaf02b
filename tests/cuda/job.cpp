// SPDX-License-Identifier: Apache-2.0
// Whole jobs of the tests' small model that compute on a GPU.
#include "app/job.hpp"

#include <cstdlib>
#include <map>
#include <utility>

#include "cuda/gpu.hpp"
#include "edl/base/checkpoint/directory.hpp"

namespace job_test {

using job::count, job::has, job::train;

namespace {

using words = std::vector<std::string>;

/// The small model's binary may have been carried elsewhere.
job::options small(job::environment env = {}) {
  char const* const from_environment = std::getenv("EDL_TINY");
  return {.env = std::move(env), .program = from_environment ? from_environment : EDL_TINY};
}

double last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
}

words on_gpu(words more) {
  more.insert(more.end(), {"--device=cuda", "--validation_data=" + job::data().validation, "--num_epochs=3"});
  return train(more);
}

}  // namespace

TEST_CASE(
    "a local run keeps variables and slots on the GPU; evaluations, checkpoints and the model are made of "
    "them") {
  if (!gpu_or_skip()) return;
  job::scratch const dir;
  for (char const* const precision : {"float32", "bfloat16"}) {
    CAPTURE(precision);
    std::string const own = dir / precision;
    job::run j(on_gpu({std::string("--precision=") + precision, "--evaluation_steps=50",
                       "--checkpoint_dir=" + own + "/checkpoints", "--checkpoint_steps=70",
                       "--output=" + own + "/model"}),
               small());
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "computes on "));
    CHECK(count(j.log(), "Evaluation metrics[v=") == 4);
    CHECK(last_accuracy(j.log()) > 0.8);
    CHECK(has(j.log(), "Epoch 2: 2048 records in the data set, 2048 counted once"));
    CHECK(std::filesystem::exists(own + "/model/model.safetensors"));
    CHECK(edl::checkpoint::newest_valid(own + "/checkpoints") == own + "/checkpoints/version-192");
    // What the GPU has trained the processor evaluates, and goes on with.
    job::run after(train({"--device=cpu", "--num_epochs=4", "--validation_data=" + job::data().validation,
                          "--checkpoint_dir=" + own + "/checkpoints"}),
                   small());
    CHECK(after.wait() == 0);
    CAPTURE(after.log());
    CHECK(has(after.log(), "going on from "));
    CHECK(last_accuracy(after.log()) > 0.8);
  }
}

TEST_CASE("a run that was checkpointed on a GPU goes on there to the same bits") {
  if (!gpu_or_skip()) return;
  job::scratch const dir;
  auto const go = [&](char const* name, words more) {
    // Kernels that are measured may be others in the next run.
    more.insert(more.end(), {"--device=cuda", "--deterministic", std::string("--output=") + (dir / name)});
    job::run j(train(more), small());
    CHECK(j.wait() == 0);
    return job::slurp((dir / name) + "/model.safetensors");
  };
  std::string const whole = go("whole", {"--num_epochs=2"});
  go("half", {"--num_epochs=1", "--checkpoint_dir=" + dir / "checkpoints"});
  CHECK(go("resumed", {"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"}) == whole);
}

TEST_CASE("samples that are kept are counted as those that are read, and train to the same bits") {
  if (!gpu_or_skip()) return;
  job::scratch const dir;
  std::map<std::string, std::string> models;
  for (char const* const keep : {"on", "off"}) {
    CAPTURE(keep);
    job::run j(on_gpu({std::string("--keep_samples=") + keep, "--evaluation_steps=50", "--deterministic",
                       std::string("--output=") + (dir / keep)}),
               small());
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "keeps the 2560 samples of training and evaluation") == (keep == std::string("on")));
    for (char const* epoch : {"Epoch 0: ", "Epoch 1: ", "Epoch 2: "})
      CHECK(has(j.log(), epoch + std::string("2048 records in the data set, 2048 counted once, 0 skipped as "
                                             "damaged, 0 left")));
    models[keep] = job::slurp((dir / keep) + "/model.safetensors");
  }
  CHECK(models["on"].size() > 259 * sizeof(float));
  CHECK(models["on"] == models["off"]);
}

TEST_CASE("workers on a GPU train with servers and by all-reduce") {
  if (!gpu_or_skip()) return;
  for (words const& how : {words{"--num_workers=2", "--num_ps_pods=2", "--use_async=true"},
                           words{"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    job::run j(on_gpu(how), small());
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(last_accuracy(j.log()) > 0.8);
    CHECK(has(j.log(), "Epoch 2: 2048 records in the data set, 2048 counted once"));
  }
}

TEST_CASE("a job with tables trains on a GPU to the same bits with a server as alone, and by all-reduce") {
  if (!gpu_or_skip()) return;
  job::scratch const dir;
  std::map<std::string, std::string> models;
  words const ways[] = {{"alone"},
                        {"served", "--num_workers=1", "--num_ps_pods=1"},
                        {"copied", "--num_workers=2", "--distribution_strategy=AllreduceStrategy"}};
  for (words flags : ways) {
    std::string const name = std::exchange(flags[0], "--output=" + (dir / flags[0]));
    CAPTURE(name);
    flags.insert(flags.end(), {"--deterministic", "--num_threads=1"});
    job::run j(on_gpu(flags), small({{"TINY_TABLES", "1"}}));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "computes on "));
    CHECK_FALSE(has(j.log(), "computes on the processor"));
    CHECK(last_accuracy(j.log()) > 0.65);
    CHECK(has(j.log(), "Epoch 2: 2048 records in the data set, 2048 counted once"));
    models[name] = job::slurp((dir / name) + "/model.safetensors");
  }
  CHECK(models["alone"].size() > 10'000);
  CHECK(models["alone"] == models["served"]);
}

TEST_CASE("steps between pulls are made on the host") {
  if (!gpu_or_skip()) return;
  job::run j(on_gpu({"--num_workers=1", "--num_ps_pods=1", "--use_async=true", "--get_model_steps=4"}),
             small());
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(last_accuracy(j.log()) > 0.7);
}

TEST_CASE(
    "without a GPU, one that is asked for is an error, and auto computes on the processor and says so") {
  job::run none(train({"--device=cuda"}), small({{"EDL_CUDA_LIBRARY", "/nowhere/libedl-cuda.so"}}));
  CHECK(none.wait() == 1);
  CHECK(has(none.log(), "EDL_CUDA_LIBRARY"));
  job::run processor(train({"--device=auto"}), small({{"EDL_CUDA_LIBRARY", "/nowhere/libedl-cuda.so"}}));
  CHECK(processor.wait() == 0);
  CAPTURE(processor.log());
  CHECK(has(processor.log(), "computes on the processor, because no GPU is available: GPU: "));
}

}  // namespace job_test
