// SPDX-License-Identifier: Apache-2.0
#include "data/analyze.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command/tool.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/compute/features/string_lookup.hpp"

namespace analyze_test {

namespace {

std::string table_of_people(support::scratch const& dir) {
  return support::write(
      dir / "people.csv",
      "age,wage,home-town\n20,1.5,Rome\n30,2.5,Oslo\n40,,Rome\n50,4,Paris\n20,nan,Oslo\n60,4,Rome\n");
}

}  // namespace

TEST_CASE("analyze tells each feature's statistics") {
  support::scratch const dir;
  auto const said = tool_test::run({"data", "analyze", table_of_people(dir), "--buckets=3", "-o", "json"});
  REQUIRE(said.code == 0);
  auto const features = nlohmann::json::parse(said.out)["features"];
  REQUIRE(features.size() == 3);
  auto const& age = features[0];
  CHECK(age["name"] == "age");
  CHECK(age["kind"] == "integers");
  CHECK(age["records"] == 6);
  CHECK(age["min"] == 20);
  CHECK(age["max"] == 60);
  CHECK(age["mean"].get<double>() == doctest::Approx(220.0 / 6));
  CHECK(age["stddev"].get<double>() == doctest::Approx(14.907120));
  CHECK(age["boundaries"] == nlohmann::json::parse("[30, 50]"));
  CHECK(age["distinct"] == 5);
  auto const& town = features[1];
  CHECK(town["name"] == "home-town");
  CHECK(town["distinct"] == 3);
  CHECK_FALSE(town.contains("mean"));
  auto const& wage = features[2];
  CHECK(wage["records"] == 5);
  CHECK(wage["values"] == 4);
  CHECK(wage["not_finite"] == 1);
  CHECK(wage["max"] == 4);
}

TEST_CASE("what analyze writes is what a model's statistics read") {
  support::scratch const dir;
  std::string const to = dir / "statistics";
  REQUIRE(tool_test::run({"data", "analyze", table_of_people(dir), "--to", to}).code == 0);
  std::map<std::string, std::string> variables;
  std::istringstream lines(support::read(to + "/statistics.env"));
  for (std::string line; std::getline(lines, line);)
    variables[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  auto const there = [&](char const* name) {
    auto const it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  };
  edl::features::statistics const age("age", there), town("home-town", there);
  CHECK(age.max(0) == 60);
  CHECK(age.mean(0) == doctest::Approx(220.0 / 6));
  CHECK(age.boundaries({}).back() == 60);
  CHECK(town.distinct(0) == 3);
  auto const towns = edl::features::loaded_lookup::from_file(town.vocabulary(""));
  CHECK(towns("Rome") == 0);  // the most frequent first
  CHECK(towns("Oslo") == 1);
  CHECK(towns("Paris") == 2);

  auto const again = tool_test::run({"data", "analyze", table_of_people(dir), "--to", to});
  CHECK(again.code != 0);
  CHECK(support::has(again.err, "already exists"));
}

TEST_CASE("features of the same variables, and a path that a shell would cut, are refused") {
  support::scratch const dir;
  std::string const twins = support::write(dir / "twins.csv", "a-b,a_b\n1,2\n");
  CHECK(support::has(tool_test::run({"data", "analyze", twins, "--to", dir / "s"}).err,
                     "features 'a-b' and 'a_b' would have the same variables"));
  CHECK(support::has(tool_test::run({"data", "analyze", table_of_people(dir), "--to", dir / "two words"}).err,
                     "without blanks"));
  CHECK_FALSE(std::filesystem::exists(dir / "s"));
}

TEST_CASE("blanks at the ends of words are not a part of them") {
  support::scratch const dir;
  std::string const path = support::write(dir / "blanks.csv", "town\nRome\n Rome\n");
  auto const said = tool_test::run({"data", "analyze", path, "-o", "json"});
  CHECK(nlohmann::json::parse(said.out)["features"][0]["distinct"] == 1);
}

TEST_CASE("a feature with more words than asked for, or without words, has no vocabulary") {
  support::scratch const dir;
  auto const said = tool_test::run({"data", "analyze", table_of_people(dir), "--most_words=2", "-o", "json"});
  CHECK(said.code == 0);
  CHECK_FALSE(nlohmann::json::parse(said.out)["features"][1].contains("distinct"));
  CHECK(support::has(said.err, "feature 'home-town' has no vocabulary"));
}

}  // namespace analyze_test
