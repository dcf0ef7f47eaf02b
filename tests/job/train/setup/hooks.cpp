// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/setup/hooks.hpp"

#include <cmath>
#include <sstream>

#include "app/job.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "job/train/files.hpp"

namespace hooks_test {

using job::count, job::has, job::slurp, job::train;
using job::lines, job::several, job::with;

namespace {

/// The lines that begin so.
lines of(std::string const& text, std::string const& begin) {
  lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(begin)) all.push_back(line);
  return all;
}

std::string const evaluates = "--validation_data=" + job::data().validation;

}  // namespace

TEST_CASE("a metric that the model does not have is NaN") {
  edl::evaluation_report const of{.version = 1, .records = 2, .metrics = {{"auc", 0.5}}};
  CHECK(of.metric("auc") == 0.5);
  CHECK(std::isnan(of.metric("accuracy")));
}

TEST_CASE("hooks see each minibatch once, in its process, and each evaluation") {
  for (lines const& processes :
       {lines{}, several, lines{"--distribution_strategy=AllreduceStrategy", "--num_workers=2"}}) {
    job::scratch const dir;
    job::run j(train(with({evaluates, "--evaluation_steps=20"}, processes)),
               {.env = {{"TINY_HOOKS", dir / "notes"}}});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    std::string const notes = slurp(dir / "notes");
    CAPTURE(notes);
    lines const steps = of(notes, "step ");
    CHECK(steps.size() == 64);  // minibatches of the data
    CHECK(count(notes, " records 32\n") == 64);
    CHECK(of(notes, "evaluation ").size() == count(j.log(), "Evaluation metrics[v="));
    CHECK(count(notes, " records 512 ") == of(notes, "evaluation ").size());
    if (processes.empty()) {
      CHECK(steps.front() == "step 1 worker 0 records 32");
      CHECK(steps.back() == "step 64 worker 0 records 32");
    } else {
      CHECK(has(notes, " worker 0 "));
    }
    CHECK_FALSE(has(j.log(), "failed at version"));
  }
}

TEST_CASE("a reason of on_evaluation ends the job, and the same command does not resume it") {
  lines const ordered{"--distribution_strategy=AllreduceStrategy", "--num_workers=2", "--fixed_global_batch"};
  for (lines const& processes : {lines{}, several, ordered}) {
    job::scratch const dir;
    lines const command = with({evaluates, "--evaluation_steps=20", "--num_epochs=50",
                                "--num_minibatches_per_task=1", "--checkpoint_dir=" + dir / "c"},
                               processes);
    job::options const observed{.env = {{"TINY_HOOKS", dir / "notes"}, {"TINY_HOOKS_STOP", "40"}}};
    job::run first(train(command), observed);
    CHECK(first.wait() == 0);
    CAPTURE(first.log());
    std::string const why = "The model's on_evaluation ended the job at version 40: it is good enough";
    CHECK(count(first.log(), why) == 1);
    std::string const notes = slurp(dir / "notes");
    CHECK(has(notes, "evaluation 20 records 512"));
    CHECK(has(notes, "evaluation 40 records 512"));
    CHECK(of(notes, "step ").size() < 50 * 64);
    auto const newest = edl::checkpoint::newest_valid(dir / "c");
    REQUIRE(newest);
    if (processes == ordered) CHECK(newest->ends_with("/version-40"));
    job::run second(train(command), observed);
    CHECK(second.wait() == 0);
    CAPTURE(second.log());
    CHECK(count(second.log(), why) == 1);
    CHECK(of(slurp(dir / "notes"), "step ").size() == of(notes, "step ").size());
  }
}

TEST_CASE("a hook that throws is not called again, and the job trains to its end") {
  job::scratch const dir;
  job::run j(train({evaluates, "--evaluation_steps=20"}),
             {.env = {{"TINY_HOOKS", dir / "notes"}, {"TINY_HOOKS_FAIL", "1"}}});
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  std::string const goes_on = "; the job goes on, and this process does not call it again";
  CHECK(count(j.log(), "the model's on_step failed at version 1: no room for notes" + goes_on) == 1);
  CHECK(
      count(j.log(),
            "the model's on_evaluation failed at version 20: it threw something other than a std::exception" +
                goes_on) == 1);
  CHECK(count(j.log(), "failed at version") == 2);
  CHECK(of(slurp(dir / "notes"), "").size() == 2);
  CHECK(has(j.log(), "2048 records in the data set, 2048 counted once"));
}

}  // namespace hooks_test
