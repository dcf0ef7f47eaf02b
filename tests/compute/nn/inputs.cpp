// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/inputs.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace inputs_test {

namespace nn = edl::nn;

namespace {

constexpr auto in =
    nn::inputs(nn::input<"numbers">(nn::features{.count = 3}), nn::input<"words">(nn::ids{.count = 2}),
               nn::input<"tags">(nn::weighted_ids{.most = 2}));

constexpr auto network =
    nn::sequential(in, nn::concat(in.from<"numbers">(nn::dense{.units = 2}, nn::tanh{}),
                                  in.from<"words">(nn::embedding{.vocabulary = 5, .width = 2}, nn::flatten{}),
                                  in.from<"tags">(nn::embedding_bag{.vocabulary = 4, .width = 3})));

}  // namespace

TEST_CASE("named inputs lie side by side in the row of a sample") {
  CHECK(in.input() == edl::shape{1, 1, 9});
  CHECK(in.first_of<"numbers">() == 0);
  CHECK(in.first_of<"words">() == 3);
  CHECK(in.first_of<"tags">() == 5);
  CHECK(in.has<"tags">);
  CHECK_FALSE(in.has<"tag">);
  CHECK(network.body.output(network.input) == edl::shape{1, 1, 2 + 4 + 3});
}

TEST_CASE("a branch sees its own input, and gives it the gradient") {
  lone_layer<decltype(network.body)> h{.l = network.body, .in = network.input, .batch = 2};
  h.x = {0.5, -1, 2,   1, 4, /*tags*/ 3, -1, 0.5, 0,  //
         1,   0,  -.5, 0, 1, /*tags*/ 0, 2,  1,   -2};
  h.value();
  h.backward();
  auto const gradients = h.gradients, dx = h.dx;
  CHECK(h.error(h.parameters, gradients) < 1e-7);
  for (std::size_t const sample : {0, 9}) {
    for (std::size_t i = 3; i < 9; ++i) CHECK(dx[sample + i] == 0);  // ids
    for (std::size_t i = 0; i < 3; ++i) {
      double const at = h.x[sample + i];
      h.x[sample + i] = at + 1e-5;
      double const above = h.value();
      h.x[sample + i] = at - 1e-5;
      double const below = h.value();
      h.x[sample + i] = at;
      CHECK(dx[sample + i] == doctest::Approx((above - below) / 2e-5).epsilon(1e-6));
    }
  }
}

TEST_CASE("what an input is, decides which layer takes it, and where a branch begins") {
  using enum edl::fit;
  auto const why = [](auto const& l) { return nn::find_misfit(l, in.input()).why; };
  nn::embedding const rows{.vocabulary = 5, .width = 2};
  nn::embedding_bag const bag{.vocabulary = 5, .width = 2};
  CHECK(why(network.body) == fits);
  CHECK(why(in.from<"words">(rows)) == fits);
  CHECK(why(in.from<"words">(bag)) == fits);
  CHECK(why(in.from<"tags">(bag)) == fits);
  CHECK(why(in.from<"tags">(rows)) == takes_no_weights);
  CHECK(why(in.from<"numbers">(rows)) == takes_only_ids);
  CHECK(why(in.from<"words">(nn::dense{.units = 1})) == takes_no_ids);
  CHECK(why(in.from<"words">(nn::identity{}, rows)) == takes_no_ids);
  CHECK(why(nn::sequential(nn::dense{.units = 4}, in.from<"numbers">(nn::dense{.units = 1}))) ==
        not_at_the_start);
}

TEST_CASE("a mask is of ids or of a length, where they lie in the row") {
  constexpr auto with_length =
      nn::inputs(nn::input<"numbers">(nn::features{.count = 3}), nn::input<"words">(nn::ids{.count = 2}),
                 nn::input<"places">(nn::length{.most = 9}));
  constexpr auto by_ids = with_length.mask<"words">(4), by_length = with_length.mask<"places">();
  CHECK_FALSE(by_ids.by_length);
  CHECK(by_ids.id == 4);
  CHECK(by_ids.first == 3);
  CHECK(by_ids.places(with_length.input()) == 2);
  CHECK(by_length.by_length);
  CHECK(by_length.first == 5);
  CHECK(by_length.places(with_length.input()) == 9);
  CHECK(by_length.fits({1, 1, 6}));
  CHECK_FALSE(by_length.fits({1, 1, 5}));
  double const row[] = {0, 0, 0, 4, 1, 2};
  CHECK_FALSE(by_ids.counts(row, 0));
  CHECK(by_ids.counts(row, 1));
  CHECK(by_length.counts(row, 1));
  CHECK_FALSE(by_length.counts(row, 2));
}

TEST_CASE("ids that a layer takes are found where they lie") {
  std::vector<std::array<int, 4>> found;
  nn::for_each_ids(network.body, network.input, {}, [&](nn::id_range of, int vocabulary, bool none) {
    CHECK(none == of.weighted);  // here only the bag takes ids that may be missing
    found.push_back({of.first, of.count, of.weighted, vocabulary});
  });
  CHECK(found == std::vector<std::array<int, 4>>{{3, 2, 0, 5}, {5, 2, 1, 4}});
}

TEST_CASE("a branch of ids runs on the processor") {
  CHECK(nn::is_portable(in.from<"numbers">(nn::dense{.units = 1}), in.input()));
  CHECK_FALSE(nn::is_portable(in.from<"words">(nn::embedding{.vocabulary = 5, .width = 2}), in.input()));
  constexpr auto of_table = nn::inputs(nn::input<"page">(nn::served_embedding{.count = 3, .width = 2}));
  CHECK(nn::is_portable(of_table.from<"page">(nn::factorization_machine{}), of_table.input()));
}

}  // namespace inputs_test
