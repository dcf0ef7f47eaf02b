// SPDX-License-Identifier: Apache-2.0
// That other names of options are refused is in tests/rejects/misspelt_option_*.cpp.
#include "edl/nn/option_name.hpp"

#include <doctest/doctest.h>

#include "edl/nn/layers.hpp"
#include "edl/optim/optimizers.hpp"

namespace nn = edl::nn;

namespace {

// What stands beside an option changes nothing of it.
static_assert(nn::dense{.units = 3}.units == 3 && nn::dense{.units = 3}.use_bias);
static_assert(nn::dense{.use_bias = false}.units == 0 && !nn::dense{.use_bias = false}.use_bias);
static_assert(sizeof(nn::called<nn::option::kernel>) == 1);
static_assert(nn::conv2d{.filters = 2, .stride = 3}.kernel == edl::extent(1) &&
              nn::conv2d{.filters = 2, .kernel = {1, 3}, .use_bias = false}.kernel == edl::extent(1, 3));
static_assert(nn::max_pool{}.window == edl::extent(2) && nn::dropout{.rate = 0.25f}.rate.is_in(0.25f, 0.26f));
static_assert(sizeof(nn::no_activation) == 1 && nn::dense{.units = 3, .float32 = true}.float32);
static_assert(nn::batch_norm{.scale = false}.epsilon == 1e-3f);
static_assert(edl::sgd{.momentum = 0.9f}.learning_rate == 0.01f && edl::optimizer<edl::sgd>);
static_assert(edl::adamw{.learning_rate = 2}.as_adam().learning_rate == 2);

constexpr auto net = nn::sequential(nn::residual(nn::dense{.units = 4}, nn::dense{.units = 4}),
                                    nn::concat(nn::dropout{}, nn::masked(nn::attention{.heads = 2})),
                                    nn::cross{}, nn::repeat<2>(nn::layer_norm{}));
static_assert(nn::read_options(net) && nn::read_options(nn::embedding_bag{.vocabulary = 3, .width = 4}));

}  // namespace

TEST_CASE("an option that is written when the program runs is read") {
  nn::dense one{.units = 3};
  nn::dense const copy = one;
  one.units = 5;
  CHECK(one.units == 5);
  CHECK(copy.units == 3);
  CHECK(one.output({1, 1, 2}) == edl::shape{1, 1, 5});
}
