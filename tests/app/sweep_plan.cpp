// SPDX-License-Identifier: Apache-2.0
#include "edl/app/sweep_plan.hpp"

#include <doctest/doctest.h>

#include <set>

#include "edl/core/error.hpp"
#include "text.hpp"

namespace sweep_plan_test {

using namespace edl;
using namespace edl::app;

namespace {

monitor const by{"accuracy", true};

train::hyperparameters known() {
  return {train::describe("rate", hyperparameter<float>{0.1f, "", 0, 1}),
          train::describe("depth", hyperparameter<int>{3, "", 1, 9})};
}

std::string refusal(sweep_options const& o) {
  return ::refusal([&] {
    trials_of(o, known());
    rounds_of(o);
  });
}

/// As many trials as values, after so many steps.
std::vector<trial> after(std::uint64_t steps, std::vector<double> const& values) {
  std::vector<trial> all;
  for (double const v : values) all.push_back({{}, steps, v});
  return all;
}

}  // namespace

TEST_CASE("a grid is all combinations, in order") {
  auto const all = trials_of({.grid = {"rate=0.1,0.2", "depth=1,2,3"}, .steps = 8}, known());
  REQUIRE(all.size() == 6);
  CHECK(train::write_settings(all[0].values) == "rate=0.1;depth=1");
  CHECK(train::write_settings(all[5].values) == "rate=0.2;depth=3");
}

TEST_CASE("drawn values lie between, follow from the seed, and more trials begin with the same ones") {
  sweep_options o{.random = {"rate=0.001:0.1:log", "depth=1:9"}, .trials = 50, .seed = 7, .steps = 8};
  auto const all = trials_of(o, known());
  REQUIRE(all.size() == 50);
  std::set<std::string> depths;
  std::size_t small = 0;
  for (trial const& t : all) {
    double const rate = std::stod(t.values[0].second);
    CHECK(rate >= 0.001);
    CHECK(rate <= 0.1);
    small += rate < 0.01;
    depths.insert(t.values[1].second);
  }
  CHECK(small > 10);  // half of the orders of magnitude
  CHECK(small < 40);
  CHECK(depths.size() > 5);
  o.trials = 60;
  auto const more = trials_of(o, known());
  for (std::size_t i = 0; i < 50; ++i) CHECK(more[i].values == all[i].values);
  o.seed = 8;
  CHECK(trials_of(o, known())[0].values != all[0].values);
}

TEST_CASE("whole numbers lie between, also where the bounds are none") {
  for (trial const& t : trials_of({.random = {"n=0.6:3.4:whole", "m=0.6:3.4:log:whole"}, .trials = 40}, {}))
    for (auto const& [name, value] : t.values) {
      CHECK(std::stoi(value) >= 1);
      CHECK(std::stoi(value) <= 3);
    }
}

TEST_CASE("who does not know the model says which numbers are whole, and its values are not checked") {
  auto const all =
      trials_of({.grid = {"anything=x"}, .random = {"units=10:1000:log:whole"}, .trials = 30}, {});
  REQUIRE(all.size() == 30);
  std::size_t small = 0;
  for (trial const& t : all) {
    CHECK(t.values[0].second == "x");
    CHECK(t.values[1].second.find_first_not_of("0123456789") == std::string::npos);
    small += std::stoi(t.values[1].second) < 100;
  }
  CHECK(small > 5);
  CHECK(small < 25);
}

TEST_CASE("what cannot be searched is refused") {
  CHECK(refusal({.grid = {"rate=0.1,0.2"}, .steps = 8}) == "accepted");
  CHECK(refusal({.steps = 8}).find("--grid") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1,2"}, .steps = 8}) == "--set rate=2: expected a number from 0 to 1");
  CHECK(refusal({.grid = {"rat=0.1"}, .steps = 8}).find("did you mean rate") != std::string::npos);
  CHECK(refusal({.grid = {"rate"}, .steps = 8}).find("expected name=value") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1", "rate=0.2"}, .steps = 8}).find("twice") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1"}, .set = {"depth=2"}, .steps = 8}) == "accepted");
  CHECK(refusal({.grid = {"rate=0.1"}, .set = {"depth=2;rate=0.3"}, .steps = 8}) ==
        "--set rate=0.3: the sweep searches rate; give one of the two");
  CHECK(refusal({.random = {"rate=0:1"}, .set = {"depth=2", "rate=0.3"}, .trials = 2, .steps = 8}) ==
        "--set rate=0.3: the sweep searches rate; give one of the two");
  CHECK(refusal({.grid = {"rate=0.1"}, .set = {"depth=20"}, .steps = 8}).find("from 1 to 9") !=
        std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1"}, .set = {"dept=2"}, .steps = 8}).find("did you mean depth") !=
        std::string::npos);
  CHECK(refusal({.random = {"rate=0.1:0.2"}, .steps = 8}).find("--trials") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1"}, .trials = 3, .steps = 8}).find("--random") != std::string::npos);
  for (char const* r :
       {"rate=0.2:0.1", "rate=0:1:log", "rate=1:2:log:log", "rate=a:1", "rate=0.1", "rate=0:1:lin",
        "rate=0:inf", "rate=0.2:0.4:whole", "rate=0.2:0.4:log:whole", "rate=0:1e300:whole"})
    CHECK(refusal({.random = {r}, .trials = 2, .steps = 8}) != "accepted");
  for (char const* g : {"rate=,", "rate=0.1,,0.2", "rate=,0.1", "rate=0.1,"})
    CHECK(refusal({.grid = {g}, .steps = 8}).find("a value is empty") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1;0.2"}, .steps = 8}) ==
        "--grid=rate=0.1;0.2: no name and no value may have a ';'; give --grid once for each hyperparameter");
  CHECK(refusal({.random = {"rate;x=0:1"}, .trials = 2, .steps = 8}).find("may have a ';'") !=
        std::string::npos);
  CHECK(refusal({.random = {"rate=0:1"}, .trials = 10'001, .steps = 8}).find("at most") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1"}}).find("--max_step") != std::string::npos);
  CHECK(refusal({.grid = {"rate=0.1"}, .steps = 8, .halving = 1}).find("--halving=1") != std::string::npos);
}

TEST_CASE("rounds grow until a whole run") {
  auto const rounds = [](std::uint64_t steps, std::uint32_t halving, std::uint64_t first) {
    return rounds_of({.steps = steps, .halving = halving, .first_steps = first});
  };
  CHECK(rounds(800, 0, 0) == std::vector<std::uint64_t>{800});
  CHECK(rounds(800, 2, 0) == std::vector<std::uint64_t>{100, 200, 400, 800});
  CHECK(rounds(900, 3, 100) == std::vector<std::uint64_t>{100, 300, 900});
  CHECK(rounds(1000, 2, 300) == std::vector<std::uint64_t>{300, 600, 1000});
  CHECK(rounds(100, 0, 500) == std::vector<std::uint64_t>{100});
  CHECK_THROWS_WITH_AS(rounds(100, 2, 100), doctest::Contains("--first_steps=100"), usage_error);
  CHECK(rounds(~0ull, 2, ~0ull - 1).back() == ~0ull);
}

TEST_CASE("each round goes on with the best, ties with the first, and never with what failed") {
  sweep_options const o{.steps = 400, .halving = 2, .first_steps = 100};
  auto all = after(100, {0.5, 0.9, 0.7, 0.9, 0.1});
  using numbers = std::vector<std::size_t>;
  CHECK(runs_of(0, all, o, by) == numbers{0, 1, 2, 3, 4});
  CHECK(runs_of(1, all, o, by) == numbers{1, 2, 3});
  CHECK(runs_of(1, all, o, monitor{"loss", false}) == numbers{0, 2, 4});
  all[1].value.reset();
  CHECK(runs_of(1, all, o, by) == numbers{2, 3});
  all[1].value = 0.9;
  // Halfway through the second round the choice is the same, whatever has come of those that went on.
  all[2] = {{}, 200, 0.0};
  CHECK(runs_of(1, all, o, by) == numbers{1, 2, 3});
  CHECK(runs_of(2, all, o, by).empty());
  all[1] = {{}, 200, 0.95};
  all[3] = {{}, 200, {}};
  CHECK(runs_of(2, all, o, by) == numbers{1});
  all[0].steps = 0;
  CHECK(runs_of(1, all, o, by).empty());
}

TEST_CASE("the best is one of the longest runs, and the table begins with it") {
  auto all = after(100, {0.5, 0.99, 0.7});
  all[2].steps = 400;
  all.push_back({{{"rate", "0.5"}}, 400, {}, "it ran\nout of memory", 3});
  CHECK(best_of(all, by) == 2);
  CHECK(table_of(all, by).find("    2       400") != std::string::npos);
  CHECK(table_of(all, by).find("failed") != std::string::npos);
  CHECK(table_of(all, by).find("rate=0.5  (it ran") != std::string::npos);
  CHECK(table_of(all, by, 1).find("and 3 more") != std::string::npos);
  CHECK(!best_of({}, by));
  auto const again = list_from_json(to_json({"how", all}), "list").trials;
  CHECK_NOTHROW(check_steps({"how", all}, 400, "list"));
  CHECK_THROWS_WITH_AS(check_steps({"how", all}, 399, "list"), doctest::Contains("list: "), error);
  REQUIRE(again.size() == 4);
  CHECK(again[1].value == 0.99);
  CHECK(!again[3].value);
  CHECK(again[3].values == all[3].values);
  CHECK(again[3].failure == "it ran out of memory");
  CHECK(again[1].failure.empty());
  CHECK(again[3].attempt == 3);
  CHECK(again[1].attempt == 0);
  for (char const* text :
       {"", "{}", "[]", R"({"trials": [{}]})", R"({"trials": [{"hyperparameters": 1}]})",
        R"({"sweep": "", "trials": [{"hyperparameters": "x", "steps": 1, "value": 1}]})",
        R"({"sweep": "", "trials": [{"hyperparameters": "x=1", "steps": -1, "value": 1}]})",
        R"({"sweep": "", "trials": [{"hyperparameters": "x=1", "steps": 1, "value": 1, "attempt": -1}]})",
        R"({"sweep": "", "trials": [{"hyperparameters": "x=1", "steps": 1, "value": 1, "attempt": 10001}]})"})
    CHECK_THROWS_WITH_AS(list_from_json(text, "list"), doctest::Contains("list"), error);
  // Values are printed by recursion.
  std::size_t const deep = 300'000;
  std::string const nested =
      R"({"sweep": "", "trials": [{"hyperparameters": "x=1", "steps": 1, "value": 1, "attempt": )" +
      std::string(deep, '[') + std::string(deep, ']') + "}]}";
  CHECK_THROWS_WITH_AS(list_from_json(nested, "list"), doctest::Contains("nested deeper"), error);
}

}  // namespace sweep_plan_test
