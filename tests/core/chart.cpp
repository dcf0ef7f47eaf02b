// SPDX-License-Identifier: Apache-2.0
#include "edl/core/chart.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "text.hpp"

namespace chart_test {

using edl::chart, edl::round_ticks, edl::tick_labels, edl::to_svg;
using texts = std::vector<std::string>;

namespace {

std::string labels(double from, double to, std::size_t most) {
  std::string all;
  for (std::string const& l : tick_labels(round_ticks(from, to, most))) all += (all.empty() ? "" : " ") + l;
  return all;
}

}  // namespace

TEST_CASE("ticks are round, and of one form") {
  CHECK(labels(0, 1, 6) == "0 0.2 0.4 0.6 0.8 1.0");
  CHECK(labels(0, 938, 10) == "0 100 200 300 400 500 600 700 800 900");
  CHECK(labels(0.003, 0.0479, 5) == "0.01 0.02 0.03 0.04");
  CHECK(labels(-1.2, 1.2, 5) == "-1.0 -0.5 0 0.5 1.0");
  CHECK(labels(0, 1'000'000, 6) == "0 200k 400k 600k 800k 1000k");
  CHECK(labels(0, 52'000'000, 6) == "0 10M 20M 30M 40M 50M");
  CHECK(labels(0, 12'500, 7) == "0 2k 4k 6k 8k 10k 12k");
  CHECK(labels(1e-9, 5e-9, 6) == "1e-09 2e-09 3e-09 4e-09 5e-09");
  CHECK(labels(1, 1, 5) == "");
  CHECK(labels(0, std::numeric_limits<double>::infinity(), 5) == "");
  for (double to : {1.0, 1.7, 2.9, 3.4, 7.7, 9.99, 12.3, 1e300})
    for (std::size_t most : {2, 3, 5, 8}) CHECK(round_ticks(0, to, most).size() <= most);
}

TEST_CASE("a picture has its title, its axes, and a legend where there are several lines") {
  double const none = std::numeric_limits<double>::quiet_NaN();
  std::string const svg =
      to_svg({.title = "a<b & c",
              .x_name = "step",
              .panels = {{"loss", {{"training", {{1, 2}, {2, 1}}}, {"validation", {{2, 1}}}}},
                         {"accuracy", {{"accuracy", {{1, 0.1}, {2, none}, {3, 0.9}}}}}}});
  CHECK(count(svg, "a&lt;b &amp; c") == 2);
  CHECK(count(svg, ">training<") == 1);
  CHECK(count(svg, ">validation<") == 1);
  CHECK(count(svg, ">accuracy<") == 1);  // one line is named by its panel
  CHECK(count(svg, ">step<") == 1);
  CHECK(count(svg, "prefers-color-scheme:dark") == 1);
  CHECK(svg.find("nan") == svg.npos);
  CHECK(svg.find("inf") == svg.npos);
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("what cannot be drawn makes no picture that is none") {
  double const most = std::numeric_limits<double>::max();
  for (auto const& points : std::vector<std::vector<std::pair<double, double>>>{
           {}, {{5, 5}}, {{0, 0}, {1, 0}}, {{0, most}, {1, -most}}, {{0, 1e17}, {1, 1e17 + 16}}, {{0, -3}}}) {
    std::string const svg = to_svg({.title = "t", .x_name = "x", .panels = {{"p", {{"l", points}}}}});
    CHECK(svg.find("nan") == svg.npos);
    CHECK(svg.find("inf") == svg.npos);
  }
  CHECK(to_svg({}).ends_with("</svg>\n"));
}

TEST_CASE("a line of very many points keeps its extremes, and is short") {
  chart::line l{.name = "l", .points = {}};
  for (int i = 0; i < 200'000; ++i) l.points.emplace_back(i, i == 77'777 ? 9.5 : std::sin(i));
  std::string const svg = to_svg({.title = "t", .x_name = "x", .panels = {{"p", {l}}}});
  CHECK(svg.size() < 100'000);
  CHECK(svg.find(">8<") != svg.npos);
}

}  // namespace chart_test
