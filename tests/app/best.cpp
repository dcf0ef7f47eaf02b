// SPDX-License-Identifier: Apache-2.0
// What evaluations decide in jobs: the best model, the early end, the learning rate.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/tiny_job.hpp"

namespace best_test {

using namespace tiny;

namespace {

lines watched(job::scratch const& dir, std::string const& name, lines more = {}) {
  more.insert(more.end(),
              {"--validation_data=" + job::data().validation, "--num_epochs=4", "--evaluation_steps=16",
               "--checkpoint_steps=24", "--save_best=accuracy", "--checkpoint_dir=" + dir / name});
  return more;
}

/// The learning rates in a job's history, by step.
std::map<std::uint64_t, double> rates_in(std::string const& directory) {
  std::map<std::uint64_t, double> all;
  std::istringstream in(slurp(directory + "/history.jsonl"));
  for (std::string line; std::getline(in, line);)
    if (auto const of = nlohmann::json::parse(line); of.contains("learning_rate"))
      all[of["step"]] = of["learning_rate"];
  return all;
}

/// Each line of the history has the rate of the step that led to it, halved by each evaluation but the first.
void check_rates(std::string const& directory, std::uint64_t evaluation_steps) {
  for (auto const& [step, rate] : rates_in(directory)) {
    CAPTURE(step);
    std::uint64_t const reductions = std::max<std::uint64_t>((step - 1) / evaluation_steps, 1) - 1;
    if (step > 4) CHECK(rate == doctest::Approx(0.1 * std::pow(0.5, double(reductions))));
  }
}

}  // namespace

TEST_CASE("the best model is kept by servers and by all-reduce, and a job ends early") {
  job::scratch const dir;
  int n = 0;
  for (lines const& how :
       {cluster(2, 2, watched(dir, "servers", {"--use_async", "--early_stopping=accuracy:min,patience=1"})),
        replicas(2, watched(dir, "copies", {"--early_stopping=accuracy:min,patience=1"}))}) {
    // Accuracy rises, so that the lowest is an early one.
    std::string const syncs = dir / "syncs-" + std::to_string(n);
    job::run j(how, {.env = {{"TINY_SYNCS", syncs}}});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "Early stopping: accuracy has made no progress in the 1 evaluation up to version "));
    CHECK(has(j.log(), "Best accuracy: "));
    CHECK(j.nothing_left());
    std::string const best = dir / (n++ == 0 ? "servers" : "copies") + "/best";
    CHECK(std::filesystem::exists(best + "/model.safetensors"));
    job::run evaluate(
        {"evaluate", "--validation_data=" + job::data().validation, "--checkpoint_dir_for_init=" + best});
    CHECK(evaluate.wait() == 0);
    // Beside the files of models an evaluation waits for the disk once.
    std::size_t const evaluations = count(j.log(), "Evaluation metrics[v=");
    CHECK(evaluations > 0);
    CHECK(count(slurp(syncs), "/.evaluations.json.tmp-") <= evaluations);
    CHECK(count(slurp(syncs), "journal.json") == 0);  // of one machine
    std::size_t const checkpoints = count(j.log(), "Checkpoint of version ");
    CHECK(count(slurp(syncs), std::filesystem::path(best).parent_path().string() + "\n") <=
          checkpoints + 1);  // and the epoch
  }
}

TEST_CASE("a job in a fixed order has the same best model when a worker and the master are killed") {
  job::scratch const dir;
  lines const order{"--fixed_global_batch", "--num_threads=1", "--deterministic"};
  job::run whole(replicas(2, watched(dir, "whole", order)));
  CHECK(whole.wait() == 0);
  job::run j(replicas(2, watched(dir, "killed", order)), slow);
  REQUIRE(j.says("Evaluation metrics[v=16]"));
  for (char const* role : {"worker", "master"}) {
    pid_t const victim = j.find(role, role == std::string("worker") ? 1 : 0);
    REQUIRE(victim);
    ::kill(victim, SIGKILL);
    REQUIRE(j.says(role == std::string("worker") ? "Evaluation metrics[v=48]"
                                                 : "the previous master ended before its job"));
  }
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  check_account(j.log(), 4);
  CHECK(slurp(dir / "killed/best/model.safetensors") == slurp(dir / "whole/best/model.safetensors"));
}

TEST_CASE("a job in a fixed order evaluates every version, and ends at the one that decides it") {
  job::scratch const dir;
  lines const order{"--fixed_global_batch", "--num_threads=1", "--deterministic", "--evaluation_steps=4",
                    "--early_stopping=accuracy:min,patience=3"};
  // Evaluations take no time, and much more than the steps between them.
  std::string lists[2], models[2];
  for (int i : {0, 1}) {
    std::string const name = i == 0 ? "quick" : "slow";
    auto const options = i == 0 ? job::options() : job::options{.env = {{"TINY_EVALUATION_DELAY_US", "500"}}};
    auto flags = watched(dir, name, order);
    std::erase(flags, "--evaluation_steps=16");
    flags.push_back("--output=" + dir / name + "-model");
    job::run j(replicas(2, flags), options);
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(
        has(j.log(), "Early stopping: accuracy has made no progress in the 3 evaluations up to version 16"));
    CHECK(has(j.log(), "trained 1024 records"));
    for (int version : {4, 8, 12, 16})
      CHECK(count(j.log(), "Evaluation metrics[v=" + std::to_string(version) + "]") == 1);
    auto const newest = edl::checkpoint::newest_valid(dir / name);
    REQUIRE(newest);
    CHECK(edl::checkpoint::read_manifest(*newest).version == 16);
    lists[i] = slurp(dir / name + "/evaluations.json");
    models[i] = slurp(dir / name + "-model/model.safetensors");
  }
  CHECK(lists[0] == lists[1]);
  CHECK(models[0] == models[1]);
}

TEST_CASE("evaluations reduce the rate, at the same versions after any kill") {
  for (bool const several : {false, true}) {
    job::scratch const dir;
    auto const flags = [&](std::string const& name) {
      lines all{"--validation_data=" + job::data().validation,
                "--num_epochs=4",
                "--evaluation_steps=16",
                "--checkpoint_steps=8",
                "--history_steps=8",
                "--num_threads=1",
                "--deterministic",
                "--checkpoint_dir=" + dir / name,
                "--output=" + dir / name + "-model"};
      if (several) all.push_back("--fixed_global_batch");
      return several ? replicas(2, all) : train(all);
    };
    job::options const quick{.env = {{"TINY_OPTIMIZER", "plateau"}}};
    job::options const slowly{.env = {{"TINY_OPTIMIZER", "plateau"}, {"TINY_DELAY_US", "900"}}};
    job::run whole(flags("whole"), quick);
    CHECK(whole.wait() == 0);
    CAPTURE(whole.log());
    CHECK(has(whole.log(), "version 32: accuracy makes no progress, so the learning rate is 0.5 of"));
    check_rates(dir / "whole", 16);

    {
      job::run killed(flags("killed"), slowly);
      REQUIRE(killed.says("Checkpoint of version 40 written"));
      if (several) {
        for (char const* role : {"worker", "master"}) {
          pid_t const victim = killed.find(role, role == std::string("worker") ? 1 : 0);
          REQUIRE(victim);
          ::kill(victim, SIGKILL);
          REQUIRE(killed.says(role == std::string("worker") ? "Evaluation metrics[v=64]"
                                                            : "the previous master ended before its job"));
        }
        CHECK(killed.wait() == 0);
      } else {
        ::kill(killed.pid(), SIGKILL);
        killed.wait();
        job::run again(flags("killed"), quick);
        int const code = again.wait();
        CAPTURE(again.log());
        CHECK(code == 0);
      }
    }
    if (!several) {
      // Most of its time it evaluates, and so it is stopped while it does.
      job::run stopped(flags("stopped"),
                       {.env = {{"TINY_OPTIMIZER", "plateau"}, {"TINY_EVALUATION_DELAY_US", "1000"}}});
      REQUIRE(stopped.says("Evaluation metrics[v=16]"));
      ::kill(stopped.pid(), SIGINT);
      stopped.wait();
      job::run again(flags("stopped"), quick);
      CHECK(again.wait() == 0);
      CAPTURE(again.log());
      CHECK(slurp(dir / "stopped/evaluations.json") == slurp(dir / "whole/evaluations.json"));
      CHECK(slurp(dir / "stopped-model/model.safetensors") == slurp(dir / "whole-model/model.safetensors"));
    }
    CHECK(slurp(dir / "killed/evaluations.json") == slurp(dir / "whole/evaluations.json"));
    CHECK(slurp(dir / "killed-model/model.safetensors") == slurp(dir / "whole-model/model.safetensors"));
  }
}

TEST_CASE("evaluations reduce the rate of servers, and of workers in any order") {
  for (bool const servers : {true, false}) {
    job::scratch const dir;
    lines const more{"--validation_data=" + job::data().validation, "--num_epochs=4", "--evaluation_steps=32",
                     "--history_steps=4", "--checkpoint_dir=" + dir / "c"};
    job::run j(servers ? cluster(2, 2, more) : replicas(2, more), {.env = {{"TINY_OPTIMIZER", "plateau"}}});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    check_account(j.log(), 4);
    auto const rates = rates_in(dir / "c");
    CHECK(rates.rbegin()->second < 0.1 * 0.5);
    CHECK(rates.rbegin()->second > 0);
    if (!servers) check_rates(dir / "c", 32);
  }
}

TEST_CASE("a schedule that waits for evaluations that are never made is warned of") {
  job::run j(train({}), {.env = {{"TINY_OPTIMIZER", "plateau"}}});
  CHECK(j.wait() == 0);
  CHECK(count(j.log(), "so that the rate is never reduced: give --evaluation_steps") == 1);
}

}  // namespace best_test
