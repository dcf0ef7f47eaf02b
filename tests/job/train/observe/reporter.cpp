// SPDX-License-Identifier: Apache-2.0
// What a job says at its end is looked at in tests/job/train/observe/summary.cpp and tests/app/terminal.cpp.
#include "edl/job/train/observe/reporter.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

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
  CHECK_FALSE(r.judged(good)().stops);
  CHECK(r.newest_judged() == 8);
  CHECK_FALSE(r.evaluated(bad, decisions));
  CHECK(r.evaluation()->version == 16);
  CHECK(std::filesystem::exists(dir / "evaluations.json"));
  CHECK_FALSE(r.stopped_at());
}

TEST_CASE("a model's hook that is slow is told of, and what it returns ends a job that evaluates by steps") {
  for (std::uint64_t const steps : {8, 0}) {
    scratch const dir;
    auto p = with_metrics();
    p.on_evaluation = [&](edl::evaluation_report const& of) {
      if (steps > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1050));
      return of.metric("accuracy") > 0.8 && of.records == 10 ? "enough" : "";
    };
    edl::job j;
    j.evaluation.asks_model = true;
    j.evaluation.evaluation_steps = steps;
    int const written = ::open((dir / "log").c_str(), O_WRONLY | O_CREAT, 0600);
    edl::logger const log(edl::severity::warning, "", written);
    edl::train::reporter r(p, j, 0, {}, log);
    edl::master::coordinator const decisions({.training = {{"t", 20}}}, {});
    edl::master::evaluation_result const good{{.version = 8}, {0.9}, 10};
    CHECK_FALSE(r.evaluated(good, decisions));  // no flag asks for the best
    CHECK(r.judged(good)().stops == (steps > 0));
    CHECK(r.stopped_at().has_value() == (steps > 0));
    ::close(written);
    std::ifstream lines(dir / "log");
    std::string const said(std::istreambuf_iterator<char>(lines), {});
    CHECK((said.find("the model's on_evaluation took ") != std::string::npos) == (steps > 0));
  }
}

TEST_CASE("a job that decides by no metric keeps nothing, and none is the best") {
  auto p = with_metrics();
  edl::job const j;
  edl::train::reporter r(p, j, 0, {}, silent);
  edl::master::coordinator const decisions({.training = {{"t", 20}}}, {});
  edl::master::evaluation_result const result{{.version = 8}, {0.9}, 10};
  CHECK_FALSE(r.evaluated(result, decisions));
  CHECK_FALSE(r.judged(result)().stops);
  CHECK(r.evaluation()->values == edl::train::metric_values{{"accuracy", 0.9}});
  CHECK_FALSE(r.newest_judged());
}

}  // namespace reporter_test
