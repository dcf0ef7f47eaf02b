// SPDX-License-Identifier: Apache-2.0
// What a job says at its end is looked at in tests/job/train/observe/summary.cpp and tests/app/terminal.cpp.
#include "edl/job/train/observe/reporter.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/wire/scratch.hpp"

namespace reporter_test {

namespace {

edl::train::program with_metrics() {
  edl::train::program p;
  p.metrics = [](edl::view<double> totals) {
    return std::vector<std::pair<std::string, double>>{{"accuracy", totals[0]}};
  };
  p.metric_names = {"accuracy"};
  return p;
}

edl::logger const silent(edl::severity::critical);

}  // namespace

TEST_CASE("an evaluation is the best until a better one was judged, and the last is told") {
  scratch const dir;
  auto p = with_metrics();
  edl::job j;
  j.checkpoints.checkpoint_dir = dir.path();
  j.evaluation.save_best = edl::monitor{"accuracy", true};
  j.evaluation.evaluation_steps = 8;  // without which the flag is refused
  edl::train::reporter r(p, j, 0, {}, silent);
  edl::master::coordinator const decisions({.training = {{"t", 20}}}, {});
  CHECK_FALSE(r.evaluation());
  CHECK_FALSE(r.newest_judged());
  edl::master::evaluation_result const good{{.version = 8}, {0.9}, 10}, bad{{.version = 16}, {0.5}, 10};
  CHECK(r.evaluated(good, decisions));
  CHECK(r.evaluation()->version == 8);
  CHECK_FALSE(r.newest_judged());  // told, and not judged yet
  CHECK_FALSE(r.judged(good)());
  CHECK(r.newest_judged() == 8);
  CHECK_FALSE(r.evaluated(bad, decisions));
  CHECK(r.evaluation()->version == 16);
  CHECK(std::filesystem::exists(dir / "evaluations.json"));
  CHECK_FALSE(r.stopped_at());
}

TEST_CASE("a job that decides by no metric keeps nothing, and none is the best") {
  auto p = with_metrics();
  edl::job const j;
  edl::train::reporter r(p, j, 0, {}, silent);
  edl::master::coordinator const decisions({.training = {{"t", 20}}}, {});
  edl::master::evaluation_result const result{{.version = 8}, {0.9}, 10};
  CHECK_FALSE(r.evaluated(result, decisions));
  CHECK_FALSE(r.judged(result)());
  CHECK(r.evaluation()->values == edl::train::metric_values{{"accuracy", 0.9}});
  CHECK_FALSE(r.newest_judged());
}

}  // namespace reporter_test
