// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/takes_ids.hpp"

#include <doctest/doctest.h>

#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/plan.hpp"

namespace takes_ids_test {

namespace nn = edl::nn;
using enum edl::fit;

namespace {

constexpr nn::embedding of_9{.vocabulary = 9, .width = 2}, of_7{.vocabulary = 7, .width = 2};
constexpr edl::shape in{1, 1, 3};

/// A user's own.
struct counts {
  int vocabulary = 5;
  static constexpr bool takes_ids = true;
  constexpr edl::fit check(edl::shape) const { return fits; }
  constexpr edl::shape output(edl::shape) const { return {1, 1, vocabulary}; }
};

template <class L>
edl::fit why(L const& l, bool ids) {
  return nn::find_misfit(l, in, ids).why;
}

}  // namespace

TEST_CASE("ids go to layers that take them, and to no others") {
  CHECK(nn::takes_ids<nn::embedding>);
  CHECK(nn::takes_ids<counts>);
  CHECK_FALSE(nn::takes_ids<nn::dense>);
  nn::dense const dense{.units = 2};
  CHECK(why(nn::sequential(of_9, dense), true) == fits);
  CHECK(why(nn::sequential(counts{}, dense), true) == fits);
  CHECK(why(nn::sequential(nn::sequential(of_9, nn::relu{}), dense), true) == fits);
  CHECK(why(nn::sequential(nn::sum(of_9, of_7), dense), true) == fits);
  CHECK(why(nn::sequential(nn::residual(of_9, of_7), dense), true) == fits);

  CHECK(why(nn::sequential(dense), true) == takes_no_ids);
  CHECK(why(nn::sequential(nn::identity{}, of_9), true) == takes_no_ids);
  CHECK(why(nn::sequential(nn::sum(of_9, dense), dense), true) == takes_no_ids);
  CHECK(nn::find_misfit(nn::residual(nn::embedding{.vocabulary = 3, .width = 1}), {1, 1, 1}, true).why ==
        takes_no_ids);

  CHECK(why(nn::sequential(dense), false) == fits);
  CHECK(why(nn::sequential(of_9, dense), false) == takes_only_ids);
  CHECK(why(nn::sequential(of_9, of_9), true) == takes_only_ids);
}

TEST_CASE("what does not take ids is found where it stands") {
  constexpr auto bad = nn::sequential(nn::concat(nn::sequential(of_9, nn::flatten{}), nn::flatten{}));
  constexpr auto found = nn::find_misfit(bad, in, true);
  CHECK(found.why == takes_no_ids);
  REQUIRE(found.depth == 2);
  CHECK(found.path[0] == 0);
  CHECK(found.path[1] == 1);
  CHECK(why(nn::sequential(nn::embedding{}, nn::flatten{}), true) == option_out_of_range);
}

TEST_CASE("all ids are below the smallest vocabulary") {
  CHECK(nn::vocabulary_of(nn::sequential(nn::sum(of_9, of_7), nn::dense{.units = 1}), in) == 7);
  CHECK(nn::vocabulary_of(nn::dense{.units = 1}, in) == 0);
  CHECK(nn::sequential(nn::ids{.count = 3}, of_9).of_ids);
  CHECK_FALSE(nn::sequential(nn::features{.count = 3}, nn::dense{.units = 1}).of_ids);
}

}  // namespace takes_ids_test
