// SPDX-License-Identifier: Apache-2.0
// Whole trainings of examples/cifar10/fast.hpp, one after the other, each with its own seed: accuracy and
// time, after a first one that is not counted, in which kernels are measured, steps recorded and samples
// brought to the GPU.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "fast.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

double seconds_between(clock_type::time_point a, clock_type::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

/// When a job's first step began, and its last evaluation ended.
struct stretch {
  clock_type::time_point begin, end;
  bool begun = false;
};

/// A trainer that outlives the jobs which it is lent to.
class lent final : public edl::worker::trainer {
 public:
  lent(std::shared_ptr<edl::worker::trainer> of, stretch& seen) : trainer_(std::move(of)), seen_(seen) {}

  edl::data::batch make_batch() const override { return trainer_->make_batch(); }
  void feed(edl::example const& record, edl::data::batch& b, int row, edl::mode m) const override {
    trainer_->feed(record, b, row, m);
  }
  std::string expect(std::uint64_t training, std::uint64_t evaluation) override {
    return expected_ ? std::string() : trainer_->expect(training, evaluation);
  }
  bool has(edl::data::batch& b) const override { return trainer_->has(b); }
  std::string device() const override { return trainer_->device(); }
  std::span<float> variables() override { return trainer_->variables(); }
  void variables_written() override { trainer_->variables_written(); }
  void resume() override { trainer_->resume(); }
  edl::arena* arena() override { return trainer_->arena(); }
  edl::view<float> gradients() const override { return trainer_->gradients(); }
  double train(edl::data::batch const& b, std::uint64_t step,
               edl::worker::gradients_ready const& ready) override {
    if (!seen_.begun) seen_.begin = clock_type::now();
    seen_.begun = true;
    return trainer_->train(b, step, ready);
  }
  void evaluate(edl::data::batch const& b, std::span<double> totals) override {
    trainer_->evaluate(b, totals);
    seen_.end = clock_type::now();
  }
  edl::view<float> predict(edl::data::batch const& b) override { return trainer_->predict(b); }
  void share(std::function<void(int)> const& work) override { trainer_->share(work); }
  int idle_threads() const override { return trainer_->idle_threads(); }
  std::size_t totals() const override { return trainer_->totals(); }
  edl::nn::trace const* profile() const override { return trainer_->profile(); }

  void expected() { expected_ = true; }

 private:
  std::shared_ptr<edl::worker::trainer> trainer_;
  stretch& seen_;
  bool expected_ = false;
};

double mean(std::vector<double> const& of) {
  return std::accumulate(of.begin(), of.end(), 0.0) / double(of.size());
}

double deviation(std::vector<double> const& of) {
  double const m = mean(of);
  double squares = 0;
  for (double v : of) squares += (v - m) * (v - m);
  return of.size() > 1 ? std::sqrt(squares / double(of.size() - 1)) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  int const runs = argc > 1 ? std::atoi(argv[1]) : 0;
  if (runs < 1 || argc < 3) {
    std::cerr << "usage: bench-accuracy RUNS train --training_data=... --validation_data=... "
                 "[--precision=bfloat16 ...]\n"
                 "trains RUNS + 1 times; --seed, --minibatch_size and --num_epochs are the recipe's\n";
    return 2;
  }
  auto program = edl::author::make_program<fast::cifar10>();
  std::shared_ptr<edl::worker::trainer> trainer;
  stretch seen;
  double accuracy = 0;
  auto const make = program.make_trainer;
  program.make_trainer = [&](edl::worker::trainer_options const& o) -> std::unique_ptr<edl::worker::trainer> {
    bool const first = !trainer;
    if (first) trainer = make(o);
    auto all = std::make_unique<lent>(trainer, seen);
    if (!first) all->expected();
    return all;
  };
  auto const metrics = program.metrics;
  program.metrics = [&](edl::view<double> totals) {
    auto const values = metrics(totals);
    accuracy = values.front().second;
    return values;
  };
  std::vector<double> accuracies, trainings, jobs;
  for (int run = 0; run <= runs; ++run) {
    std::vector<std::string> line{argv[0]};
    line.insert(line.end(), argv + 2, argv + argc);
    for (std::string more : {"--minibatch_size=1536", "--num_epochs=7", "--seed="})
      line.push_back(more == "--seed=" ? more + std::to_string(run + 1) : more);
    std::vector<char*> pointers;
    for (std::string& each : line) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    seen = {};
    auto const begin = clock_type::now();
    if (int const rc = edl::app::run(program, int(line.size()), pointers.data()); rc != 0) return rc;
    double const job = seconds_between(begin, clock_type::now()),
                 training = seconds_between(seen.begin, seen.end);
    std::printf(
        "%s %2d: %.2f %%, %.3f s from the first step to the end of the last evaluation, %.3f s with all "
        "about it\n",
        run == 0 ? "warm-up" : "run", run, 100 * accuracy, training, job);
    std::fflush(stdout);
    if (run == 0) continue;
    accuracies.push_back(100 * accuracy), trainings.push_back(training), jobs.push_back(job);
  }
  std::printf(
      "\n| runs | accuracy | deviation | lowest | seconds, training | seconds, job "
      "|\n|---|---|---|---|---|---|\n");
  std::printf("| %d | %.2f %% | %.2f | %.2f %% | %.3f | %.3f |\n", runs, mean(accuracies),
              deviation(accuracies), *std::min_element(accuracies.begin(), accuracies.end()), mean(trainings),
              mean(jobs));
  return 0;
}
