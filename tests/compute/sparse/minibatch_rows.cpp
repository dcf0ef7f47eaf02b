// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/sparse/minibatch_rows.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "edl/compute/sparse/network_embeddings.hpp"

namespace minibatch_rows_test {

using namespace edl::nn;
using edl::sparse::minibatch_rows;

namespace {

constexpr auto all =
    inputs(input<"numbers">(features{.count = 1}), input<"pair">(served_embedding{.count = 2, .width = 2}),
           input<"list", "pair">(served_embedding_bag{.most = 3, .width = 2, .combiner = combiner::mean}),
           input<"other">(served_embedding{.count = 1, .width = 1}));
auto const layout = edl::sparse::embedding_layout_of(all);

edl::data::batch two_samples() {
  auto b = edl::data::make_batch(4, std::size_t(all.input().size()), 1, 0, layout.ids);
  b.rows = 2;
  b.ids = {7, 8, 7, 9, 0, 5, 8, 8, 0, 0, 0, 7};
  b.ids.resize(24);
  b.weights = {0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0};
  b.weights.resize(24);
  b.features.assign(b.features.size(), 100);
  return b;
}

using id_vector = std::vector<std::uint64_t>;
template <class T>
auto as_vector(edl::view<T> v) {
  return std::vector(v.begin(), v.end());
}

}  // namespace

TEST_CASE("a layout says where each table's rows are in a batch; inputs may share a table") {
  REQUIRE(layout.tables == std::vector<edl::table_shape>{{"pair", 2}, {"other", 1}});
  REQUIRE(layout.inputs.size() == 3);
  CHECK(layout.ids == 6);
  CHECK(layout.inputs[0].first_feature == 1);
  CHECK(layout.inputs[1].first_feature == 5);
  CHECK(layout.inputs[1].first_id == 2);
  CHECK(layout.inputs[1].table == 0);
  CHECK(layout.inputs[1].combiner == combiner::mean);
  CHECK(layout.inputs[2].first_feature == 7);
  CHECK(layout.inputs[2].table == 1);
  CHECK(tables_agree(all));
  CHECK_FALSE(tables_agree(
      inputs(input<"a">(served_embedding{.width = 2}), input<"b", "a">(served_embedding{.width = 3}))));
  CHECK(edl::sparse::embedding_layout_of(features{.count = 3}).tables.empty());
}

TEST_CASE("each row is asked for once, and put wherever its id stands") {
  auto b = two_samples();
  minibatch_rows rows(layout);
  rows.begin(b);
  CHECK(as_vector(rows.ids(0)) == id_vector{7, 8, 9});  // an id of weight 0 is none
  CHECK(as_vector(rows.ids(1)) == id_vector{5, 7});
  auto const first = rows.rows(0);
  REQUIRE(first.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) first[i] = float(i + 1);  // 7: 1 2, 8: 3 4, 9: 5 6
  rows.rows(1)[0] = 50, rows.rows(1)[1] = 70;
  rows.fill(b);
  std::vector<float> const want{100,
                                1,
                                2,
                                3,
                                4,
                                (1 + 3 * 5) / 4.0f,
                                (2 + 3 * 6) / 4.0f,
                                50,  //
                                100,
                                3,
                                4,
                                3,
                                4,
                                0,
                                0,
                                70};
  CHECK(std::vector(b.features.begin(), b.features.begin() + 16) == want);
  CHECK(b.features[16] == 100);  // rows that are not filled are left alone
}

TEST_CASE("gradients of features become gradients of rows, summed in the samples' order") {
  auto b = two_samples();
  minibatch_rows rows(layout);
  rows.begin(b);
  std::vector<float> slope(16);
  for (std::size_t i = 0; i < 16; ++i) slope[i] = float(i);
  auto const sums = rows.sum(b, slope);
  REQUIRE(sums.size() == 2);
  CHECK(as_vector(sums[0].ids) == id_vector{7, 8, 9});
  // 7: alone in the first sample, and with weight 1/4 in its list; 8: once there, twice in the second.
  CHECK(as_vector(sums[0].gradients) ==
        std::vector<float>{1 + 5 / 4.0f, 2 + 6 / 4.0f, 3 + 9 + 11, 4 + 10 + 12, 5 * 0.75f, 6 * 0.75f});
  CHECK(as_vector(sums[1].gradients) == std::vector<float>{7, 15});
  b.rows = 0;
  rows.begin(b);
  CHECK(rows.sum(b, {})[0].ids.empty());
}

TEST_CASE("lists say what is filled and summed, of long sums so many terms at a time") {
  auto const b = two_samples();
  minibatch_rows rows(layout);
  rows.begin(b);
  std::vector<edl::sparse::row_terms> features(2);
  for (int const times : {1, 2}) {
    CAPTURE(times);
    rows.list(b, features);
    // 7, 8, then 7 / 4 + 9 · 3 / 4; and 8, 8 and an empty list.
    CHECK(features[0].at == std::vector<std::uint32_t>{1, 3, 5, 9, 11, 13});
    CHECK(features[0].first == std::vector<std::uint32_t>{0, 1, 2, 4, 5, 6, 6});
    CHECK(features[0].from == std::vector<std::uint32_t>{0, 2, 0, 4, 2, 2});
    CHECK(features[0].weights == std::vector<float>{1, 1, 0.25f, 0.75f, 1, 1});
    CHECK(features[1].at == std::vector<std::uint32_t>{7, 15});
    CHECK(features[1].from == std::vector<std::uint32_t>{0, 1});
  }
  edl::sparse::row_terms turned, joined;
  edl::sparse::turn_around(features[0], 3, 2, 3, turned, joined);
  CHECK(turned.at == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(turned.first == std::vector<std::uint32_t>{0, 2, 5, 6});
  CHECK(turned.from == std::vector<std::uint32_t>{1, 5, 3, 9, 11, 5});
  CHECK(turned.weights == std::vector<float>{1, 0.25f, 1, 1, 1, 0.75f});
  CHECK(joined.results() == 0);
  // A row that nobody has, and one whose three terms are two sums behind the four rows.
  edl::sparse::turn_around(features[0], 4, 2, 2, turned, joined);
  CHECK(turned.at == std::vector<std::uint32_t>{0, 8, 10, 4, 6});
  CHECK(turned.first == std::vector<std::uint32_t>{0, 2, 4, 5, 6, 6});
  CHECK(joined.at == std::vector<std::uint32_t>{2});
  CHECK(joined.first == std::vector<std::uint32_t>{0, 2});
  CHECK(joined.from == std::vector<std::uint32_t>{8, 10});
  CHECK(joined.weights == std::vector<float>{1, 1});
}

}  // namespace minibatch_rows_test
