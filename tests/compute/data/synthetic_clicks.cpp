// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/synthetic_clicks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace synthetic_clicks_test {

using namespace edl::data;

TEST_CASE("a drawn click log has Criteo's features, and the same ones whenever it is read") {
  auto const source = open_source("synthetic:clicks-test");
  CHECK(records(*source) == 20'000);
  auto const reader = source->open();
  edl::example record;
  reader->read(1, 7, record);
  CHECK(record.size() == 1 + 13 + 26);
  click const c = draw_click(1, 10'007);
  CHECK(record.integer("label") == c.clicked);
  CHECK(record.integer("i13") == c.counts[12]);
  CHECK(record.bytes("c26").size() == 8);
  CHECK(records(*open_source("synthetic:clicks")) == 200'000);
  CHECK_THROWS_AS(reader->read(2, 0, record), edl::data_error);
  CHECK(source->digest(0) != source->digest(1));
  CHECK(source->digest(0) != open_source("synthetic:clicks")->digest(0));
}

TEST_CASE("clicks follow the probability that a perfect model would say") {
  constexpr int n = 20'000;
  double expected = 0, clicked = 0;
  std::vector<std::pair<double, bool>> all;
  std::set<std::uint32_t> few, many;
  for (int i = 0; i < n; ++i) {
    click const c = draw_click(3, std::uint64_t(i));
    expected += c.probability;
    clicked += c.clicked;
    all.emplace_back(c.probability, c.clicked);
    few.insert(c.ids[0]);
    many.insert(c.ids[3]);
  }
  CHECK(clicked / n == doctest::Approx(expected / n).epsilon(0.02));
  CHECK(few.size() == 9);  // 1 to 9
  CHECK(many.size() > 2'000);
  // The area under the curve of the probability itself: what there is to learn.
  std::ranges::sort(all);
  double area = 0, below = 0, positives = clicked;
  for (auto const& [p, is] : all) is ? area += below : below += 1;
  CHECK(area / (positives * below) > 0.8);
}

}  // namespace synthetic_clicks_test
