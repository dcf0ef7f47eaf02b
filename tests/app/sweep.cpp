// SPDX-License-Identifier: Apache-2.0
#include "edl/app/sweep.hpp"

#include <filesystem>

#include "app/job.hpp"
#include "edl/app/sweep_plan.hpp"

namespace sweep_test {

using job::has;
using lines = std::vector<std::string>;

namespace {

lines sweep(job::scratch const& dir, std::string const& name, lines const& more) {
  lines all =
      job::train({"--validation_data=" + job::data().validation, "--output=" + dir / name, "--by=accuracy",
                  "--max_step=96", "--parallel=2", "--num_threads=1", "--deterministic"});
  all.front() = "sweep";
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<edl::app::trial> trials(job::scratch const& dir, std::string const& name) {
  return edl::app::list_from_json(job::slurp(dir / name + "/sweep.json"), name).trials;
}

edl::monitor const by{"accuracy", true};
char const* const rates = "--grid=rate=0,0.0001,0.02,0.05";

}  // namespace

TEST_CASE("a sweep by halving finds the best of the whole grid in fewer steps, and leaves its model") {
  job::scratch const dir;
  job::run whole(sweep(dir, "whole", {rates}));
  CHECK(whole.wait() == 0);
  job::run halved(sweep(dir, "halved", {rates, "--halving=2", "--first_steps=24"}));
  CHECK(halved.wait() == 0);
  CAPTURE(halved.log());
  auto const all = trials(dir, "whole"), some = trials(dir, "halved");
  REQUIRE(all.size() == 4);
  for (auto const& t : all) CHECK(t.steps == 96);
  auto const best = edl::app::best_of(all, by);
  REQUIRE(best);
  CHECK(*best >= 2);  // those with the low rates learn nothing
  CHECK(edl::app::best_of(some, by) == best);
  CHECK(some[*best].value == all[*best].value);  // it went on to the same bits
  std::uint64_t steps = 0;
  for (auto const& t : some) steps += t.steps;
  CHECK(steps == 96 + 48 + 24 + 24);
  CHECK(std::filesystem::exists(dir / "halved/trial-" + std::to_string(*best) +
                                "/checkpoints/best/model.safetensors"));
  CHECK(has(halved.log(), "the best is trial " + std::to_string(*best)));
}

TEST_CASE("a sweep that is stopped goes on with what is left, and another sweep does not") {
  job::scratch const dir;
  job::run stopped(sweep(dir, "s", {rates}), {.env = {{"TINY_DELAY_US", "2000"}}});
  REQUIRE(stopped.says("trial 0 (rate=0), 96 steps"));
  job::run beside(sweep(dir, "s", {rates}));
  CHECK(beside.wait() == 1);
  CHECK(has(beside.log(), "is in use by job 'sweep'"));
  ::kill(stopped.pid(), SIGINT);
  CHECK(stopped.wait() == 128 + SIGINT);
  CHECK(stopped.nothing_left());
  std::size_t done = 0;
  for (auto const& t : trials(dir, "s")) done += t.steps == 96;
  CHECK(done >= 1);
  CHECK(done < 4);
  job::run rest(sweep(dir, "s", {rates}));
  CHECK(rest.wait() == 0);
  CHECK_FALSE(has(rest.log(), "trial 0 (rate=0), 96 steps"));
  for (auto const& t : trials(dir, "s")) CHECK(t.value);
  job::run other(sweep(dir, "s", {"--grid=rate=0.1,0.2"}));
  CHECK(other.wait() == 1);
  CHECK(has(other.log(), "holds another sweep"));
}

TEST_CASE("a trial that fails is told with its log, and a sweep that cannot be is refused") {
  job::scratch const dir;
  job::run j(sweep(dir, "f", {"--grid=rate=0.05"}), {.env = {{"TINY_FAILS", "throw"}}});
  CHECK(j.wait() == 1);
  CHECK(has(j.log(), "failed (exited with code 1: tiny: "));
  CHECK(has(j.log(), "this worker was told to fail)"));
  CHECK(has(job::slurp(dir / "f/trial-0/log"), "this worker was told to fail"));
  for (auto const& [flag, why] :
       {std::pair{"--grid=rat=1", "did you mean rate?"},
        std::pair{"--grid=rate=2", "expected a number from 0 to 1"}, std::pair{"--trials=3", "--random"}}) {
    job::run refused(sweep(dir, "r", {flag}));
    CHECK(refused.wait() == 1);
    CHECK(has(refused.log(), why));
  }
  job::run both(sweep(dir, "r", {rates, "--set=rate=0.3"}));
  CHECK(both.wait() == 1);
  CHECK(has(both.log(), "--set rate=0.3: the sweep searches rate; give one of the two"));
  CHECK_FALSE(std::filesystem::exists(dir / "r"));  // before any run
}

}  // namespace sweep_test
