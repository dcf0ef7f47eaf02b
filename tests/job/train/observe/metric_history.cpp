// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/observe/metric_history.hpp"

#include <cmath>
#include <fstream>

#include "app/job.hpp"
#include "edl/core/error.hpp"

namespace metric_history_test {

using namespace edl;
using train::metric_history;

namespace {

std::vector<std::string> const known{"accuracy", "loss"};

metric_history history(std::string const& directory, std::uint64_t from = 0, std::uint32_t patience = 2,
                       double min_delta = 0) {
  return {directory, from, monitor{"accuracy", true},
          early_stopping{.monitor = {"accuracy", true}, .patience = patience, .min_delta = min_delta}, known};
}

metric_history::metrics accuracy(double a) { return {{"accuracy", a}, {"loss", 1 - a}}; }

}  // namespace

TEST_CASE("the best is the first of the highest, and patience counts what is not better") {
  auto h = history("", 0);
  CHECK(h.is_best(10, accuracy(0.5)));
  h.add(10, accuracy(0.5));
  CHECK(!h.is_best(20, accuracy(0.5)));
  h.add(20, accuracy(0.5));
  CHECK(h.is_best(30, accuracy(0.6)));
  h.add(30, accuracy(0.4));
  CHECK(h.stopped_at() == 30);
  CHECK(h.best()->version == 10);
  // What comes after the end was decided changes nothing.
  CHECK(!h.is_best(40, accuracy(0.9)));
  h.add(40, accuracy(0.9));
  CHECK(h.best()->version == 10);
  CHECK(h.stopped_at() == 30);
}

TEST_CASE("a model's own reason ends a job, and is read again; what came later does not") {
  job::scratch const dir;
  auto const made = [&](std::uint64_t from) {
    return metric_history(dir / ".", from, std::nullopt, std::nullopt, known);
  };
  auto h = made(0);
  h.add(10, accuracy(0.5));
  h.take_in(20, accuracy(0.4), "not \xff utf-8")();
  h.take_in(30, accuracy(0.6), "later")();
  CHECK(h.stopped_at() == 20);
  CHECK(h.stopped_by_model() == "not \xff utf-8");
  CHECK(made(30).stopped_at() == 20);
  CHECK(made(30).stopped_by_model() == "not \uFFFD utf-8");
  CHECK_FALSE(made(19).stopped());
  CHECK(made(19).stopped_by_model().empty());
  auto lost = history("", 0);
  lost.add(1, accuracy(0.5)), lost.add(2, accuracy(0.5)), lost.add(3, accuracy(0.5));
  CHECK(lost.stopped());
  CHECK(lost.stopped_by_model().empty());
}

TEST_CASE("progress below the least difference is none, and lower may be better") {
  auto h = history("", 0, 2, 0.1);
  for (auto const& [version, value] : {std::pair{1u, 0.5}, {2u, 0.55}, {3u, 0.58}})
    h.add(version, accuracy(value));
  CHECK(h.stopped_at() == 3);
  CHECK(h.best()->version == 3);
  metric_history less("", 0, monitor{"loss", false},
                      early_stopping{.monitor = {"loss", false}, .patience = 1}, known);
  less.add(1, accuracy(0.5));
  less.add(2, accuracy(0.6));
  CHECK(less.best()->version == 2);
  CHECK(!less.stopped());
  less.add(3, accuracy(0.55));
  CHECK(less.stopped());
}

TEST_CASE("a rate is reduced after evaluations without progress, and the same after a restart") {
  job::scratch const dir;
  plateau_options how{.metric = "accuracy", .factor = 0.5f, .patience = 2};
  auto const made = [&](std::uint64_t from, std::string const& directory) {
    return metric_history(directory, from, std::nullopt, std::nullopt, known,
                          rate_plateau{{"accuracy", true}, how});
  };
  auto const trained = [&](std::vector<double> const& values) {
    auto h = made(0, "");
    for (std::size_t i = 0; i < values.size(); ++i) h.add(10 * (i + 1), accuracy(values[i]));
    return h.rates();
  };
  using rates = edl::master::rate_factors;
  CHECK(trained({}).empty());
  CHECK(trained({0.5, 0.4}).empty());
  CHECK(trained({0.5, 0.4, 0.5}) == rates{{30, 0.5f}});  // not better counts as no progress
  CHECK(trained({0.5, 0.4, 0.6, 0.5, 0.5}) == rates{{50, 0.5f}});
  CHECK(trained({0.5, 0.4, 0.4, 0.4, 0.4}) == rates{{30, 0.5f}, {50, 0.25f}});
  CHECK(trained({std::nan(""), std::nan("")}) == rates{{20, 0.5f}});
  how.cooldown = 2;
  CHECK(trained({0.5, 0.4, 0.4, 0.4, 0.4, 0.4}) == rates{{30, 0.5f}});
  CHECK(trained({0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4}) == rates{{30, 0.5f}, {70, 0.25f}});
  CHECK(trained({0.5, 0.4, 0.4, 0.6, 0.5, 0.55, 0.5}) == rates{{30, 0.5f}, {70, 0.25f}});  // 0.6 is the best
  how = {.metric = "accuracy", .factor = 0.5f, .patience = 1, .min_delta = 0.1, .min_factor = 0.3f};
  CHECK(trained({0.5, 0.55, 0.61, 0.6, 0.6, 0.6}) == rates{{20, 0.5f}, {40, 0.3f}});
  how = {.metric = "accuracy", .factor = 1e-30f, .patience = 1};
  CHECK(trained({0.5, 0.5, 0.5, 0.5}).rbegin()->second > 0);

  how.factor = 0.5f;
  auto h = made(0, dir / ".");
  for (int i = 1; i <= 4; ++i) h.add(std::uint64_t(10 * i), accuracy(0.5));
  CHECK(h.rate_at(19) == 1);
  CHECK(h.rate_at(20) == 0.5f);
  CHECK(h.rate_at(1000) == 0.125f);
  CHECK(made(40, dir / ".").rates() == h.rates());
  CHECK(made(39, dir / ".").rates() == rates{{20, 0.5f}, {30, 0.25f}});
  CHECK_THROWS_WITH(
      metric_history("", 0, std::nullopt, std::nullopt, known, rate_plateau{{"auc", true}, how}),
      "the model's schedule, .metric=auc: the model's metrics are accuracy, loss");
}

TEST_CASE("a metric that is no number is never the best") {
  auto h = history("");
  CHECK(!h.is_best(1, accuracy(std::nan(""))));
  h.add(1, accuracy(std::nan("")));
  CHECK(!h.best());
  h.add(2, accuracy(0.1));
  CHECK(h.best()->version == 2);
}

TEST_CASE("a history is read again, without what was evaluated after the version that the job goes on from") {
  ::job::scratch const dir;
  {
    auto h = history(dir / ".");
    h.add(10, accuracy(0.5));
    h.add(20, accuracy(0.7));
    h.add(30, accuracy(std::nan("")));
  }
  auto again = history(dir / ".", 25);
  CHECK(again.entries().size() == 2);
  CHECK(again.best()->version == 20);
  again.add(30, accuracy(0.6));
  again.add(40, accuracy(0.6));
  CHECK(again.stopped_at() == 40);
  // Back to 10: the model of version 20 is still there, and counts.
  auto back = history(dir / ".", 10);
  CHECK(back.entries().size() == 1);
  CHECK(!back.stopped());
  CHECK(back.best()->version == 20);
  CHECK(!back.is_best(20, accuracy(0.7)));
}

TEST_CASE("after going back, a version that comes out better is the best, and its model is to be written") {
  ::job::scratch const dir;
  {
    auto h = history(dir / ".");
    h.add(10, accuracy(0.5));
    h.add(20, accuracy(0.7));
  }
  auto back = history(dir / ".", 10);
  CHECK(back.is_best(20, accuracy(0.8)));
  back.add(20, accuracy(0.8));
  CHECK(back.best()->values[0].second == 0.8);
  // Old entries of what is evaluated again decide nothing.
  auto stopping = history("", 0, 1);
  stopping.add(10, accuracy(0.5));
  stopping.add(20, accuracy(0.4));
  CHECK(stopping.stopped());
  CHECK(stopping.is_best(20, accuracy(0.6)));
}

TEST_CASE("an infinite value is none, and a run without --save_best leaves the best of others as it is") {
  ::job::scratch const dir;
  metric_history least(dir / ".", 0, monitor{"loss", false}, {}, known);
  least.add(1, {{"accuracy", 0}, {"loss", -INFINITY}});
  CHECK(!least.best());
  least.add(2, accuracy(0.5));
  CHECK(least.best()->version == 2);
  metric_history other(dir / ".", 2, {}, early_stopping{.monitor = {"loss", false}}, known);
  other.add(3, accuracy(0.9));
  CHECK(metric_history(dir / ".", 3, monitor{"loss", false}, {}, known).best()->version == 2);
}

TEST_CASE("a metric that the model has not, and a file that is none, are refused") {
  ::job::scratch const dir;
  CHECK_THROWS_WITH_AS(metric_history("", 0, monitor{"auc", true}, {}, known),
                       "--save_best=auc: the model's metrics are accuracy, loss", usage_error);
  CHECK_THROWS_AS(metric_history("", 0, {}, early_stopping{.monitor = {"auc", true}}, known), usage_error);
  for (char const* text :
       {"", "{", "[]", "{}", R"({"evaluations": [{"version": -1}]})", R"({"evaluations": 3})"}) {
    std::ofstream(dir / "evaluations.json") << text;
    CHECK_THROWS_AS(history(dir / "."), error);
  }
  // Values are printed by recursion.
  std::size_t const deep = 300'000;
  std::ofstream(dir / "evaluations.json")
      << R"({"evaluations": [], "best": )" << std::string(deep, '[') << std::string(deep, ']') << "}";
  CHECK_THROWS_WITH_AS(metric_history(dir / ".", 0, {}, early_stopping{.monitor = {"loss", false}}, known),
                       doctest::Contains("nested deeper than 200 levels"), error);
}

TEST_CASE("that no version was the best is said, and why") {
  auto h = history("");
  edl::job j;
  j.evaluation.save_best = monitor{"accuracy", true};
  CHECK(train::history_lines(j, h).empty());
  h.add(10, accuracy(std::nan("")));
  CHECK(train::history_lines(j, h) ==
        std::vector<std::string>{"No best version is kept: accuracy was never a number"});
}

}  // namespace metric_history_test
