// SPDX-License-Identifier: Apache-2.0
// The moving average of the weights in whole jobs.
#include <cmath>

#include "app/tiny_job.hpp"
#include "edl/base/checkpoint/safetensors.hpp"

namespace average_test {

using namespace tiny;

namespace {

using edl::checkpoint::safetensors_file;

lines exact(std::string const& output, lines more = {}) {
  more.insert(more.end(), {"--output=" + output, "--deterministic", "--num_threads=1",
                           "--validation_data=" + job::data().validation});
  return more;
}

std::vector<float> read(safetensors_file const& file, std::string const& name) {
  auto const* const t = file.find(name);
  REQUIRE(t);
  std::vector<float> values((t->end - t->begin) / sizeof(float));
  file.read(*t, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

std::string last_metrics(std::string const& log) {
  auto const at = log.rfind("]: {'");
  return at == std::string::npos ? "" : log.substr(at, log.find('}', at) - at);
}

}  // namespace

TEST_CASE("the exported model has the average of the weights of all steps, and is what was evaluated") {
  job::scratch const dir;
  constexpr int steps = 8;
  constexpr double decay = 0.75;
  auto const weights = [&](int after) { return dir / "weights-" + std::to_string(after); };
  for (int v = 1; v <= steps; ++v) {
    job::run j(
        train(exact(weights(v), {"--max_step=" + std::to_string(v), "--checkpoint_dir=" + dir / "c"})));
    CHECK(j.wait() == 0);
  }
  job::run average(train(exact(dir / "average", {"--max_step=8", "--moving_average=0.75"})));
  CHECK(average.wait() == 0);

  safetensors_file const plain(weights(steps) + "/model.safetensors"), is(dir / "average/model.safetensors");
  double worst = 0, apart = 0;
  int state = 0;
  for (auto const& tensor : is.tensors()) {
    auto const got = read(is, tensor.name), last = read(plain, tensor.name);
    if (has(tensor.name, "/moving_")) {
      CHECK(got == last);  // running statistics
      ++state;
      continue;
    }
    std::vector<double> sum(got.size(), 0);
    double total = 0;
    for (int v = 1; v <= steps; ++v) {
      auto const w = read(safetensors_file(weights(v) + "/model.safetensors"), tensor.name);
      total = decay * total + 1;
      for (std::size_t i = 0; i < w.size(); ++i) sum[i] = decay * sum[i] + double(w[i]);
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(sum[i] / total - double(got[i])));
      apart = std::max(apart, std::abs(double(last[i]) - double(got[i])));
    }
  }
  CHECK(state == 2);
  CHECK(worst < 1e-6);
  CHECK(apart > 1e-3);
  job::run evaluate({"evaluate", "--validation_data=" + job::data().validation, "--num_threads=1",
                     "--deterministic", "--checkpoint_dir_for_init=" + dir / "average"});
  CHECK(evaluate.wait() == 0);
  CHECK(last_metrics(average.log()) != "");
  CHECK(last_metrics(average.log()) == last_metrics(evaluate.log()));
}

TEST_CASE("the average is the same wherever the variables are") {
  job::scratch const dir;
  auto const model = [&](std::string const& name, lines const& how) {
    auto all = exact(dir / name, {"--moving_average=0.95", "--evaluation_steps=16", "--save_best=accuracy",
                                  "--checkpoint_dir=" + dir / name});
    all.insert(all.end(), how.begin(), how.end());
    job::run j(train(all));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(last_metrics(j.log()) != "");
    return slurp(dir / name + "/model.safetensors") + slurp(dir / name + "/best/model.safetensors") +
           slurp(dir / name + "/evaluations.json");
  };
  auto const local = model("local", {});
  CHECK(local == model("served", {"--num_workers=1", "--num_ps_pods=2", "--ps_replicas=2"}));
  CHECK(local == model("copied", {"--num_workers=1", "--distribution_strategy=AllreduceStrategy"}));
}

TEST_CASE("a job that is killed has the same average, and one that begins to average says so") {
  job::scratch const dir;
  auto const in = [&](std::string const& name, lines more) {
    more.insert(more.end(),
                {"--num_epochs=2", "--checkpoint_steps=16", "--checkpoint_dir=" + dir / name + "-c"});
    return train(exact(dir / name, more));
  };
  CHECK(job::run(in("whole", {"--moving_average=0.9"})).wait() == 0);
  job::run killed(in("killed", {"--moving_average=0.9"}), slow);
  REQUIRE(killed.says("Checkpoint of version 16"));
  ::kill(killed.pid(), SIGKILL);
  CHECK(killed.wait() == 128 + SIGKILL);
  job::run last(in("killed", {"--moving_average=0.9"}));
  CHECK(last.wait() == 0);
  CHECK(has(last.log(), "going on from "));
  CHECK_FALSE(has(last.log(), "has no moving average"));
  CHECK(slurp(dir / "killed/model.safetensors") == slurp(dir / "whole/model.safetensors"));

  CHECK(job::run(in("late", {"--max_step=20"})).wait() == 0);
  job::run late(in("late", {"--moving_average=0.9"}));
  CHECK(late.wait() == 0);
  CHECK(has(late.log(),
            "version-20 has no moving average of the weights: --moving_average=0.9 begins one at its "
            "weights"));
  CHECK(slurp(dir / "late/model.safetensors") != slurp(dir / "whole/model.safetensors"));
}

}  // namespace average_test
