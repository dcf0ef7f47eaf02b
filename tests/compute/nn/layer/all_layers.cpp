// SPDX-License-Identifier: Apache-2.0
// What holds of every layer: a row for each form that has code of its own.
#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace all_layers_test {

namespace nn = edl::nn;
using enum edl::mode;

namespace {

constexpr auto same = nn::padding::same, half = nn::padding::half;
constexpr nn::dense to_3{.units = 3};

/// Calls of(LAYER, SHAPE[, BATCH]) with layers whose samples know nothing of each other.
template <class Check>
void layers_of_samples(Check const& of) {
  of(nn::relu{}, {3, 2, 5});
  of(nn::leaky_relu{.slope = 0.1f}, {3, 2, 5});
  of(nn::elu{}, {3, 2, 5});
  of(nn::elu{.alpha = 0.3f}, {3, 2, 5});
  of(nn::elu{.alpha = 0}, {1, 1, 7});
  of(nn::gelu{}, {3, 2, 5});
  of(nn::silu{}, {3, 2, 5});
  of(nn::softplus{}, {3, 2, 5});
  of(nn::mish{}, {3, 2, 5});
  of(nn::sigmoid{}, {3, 2, 5});
  of(nn::tanh{}, {3, 2, 5});
  of(nn::softmax{}, {3, 2, 5});
  of(nn::log_softmax{}, {1, 1, 7});
  of(nn::log_softmax{}, {2, 3, 4});
  of(nn::identity{}, {3, 2, 5});
  of(nn::flatten{}, {3, 2, 5});
  of(nn::scale{.factor = 3}, {3, 2, 5});
  of(nn::slice{.first = 1, .count = 2}, {2, 2, 4});
  of(nn::slice{.first = 1, .count = 2, .along = nn::places}, {2, 2, 4});
  of(nn::reshape{.height = 5, .width = 0, .channels = 2}, {3, 2, 5});
  of(nn::transpose{}, {3, 2, 5});
  of(nn::pad{.before = 1, .after = {0, 2}, .value = 3}, {3, 2, 5});
  of(nn::pad{.before = {2, 0}, .channels_before = 1, .channels_after = 2}, {3, 2, 4});
  of(nn::pad{.after = {0, 3}}, {1, 5, 2});
  of(nn::pad{}, {1, 1, 3}, 1);

  of(nn::dense{.units = 5}, {2, 3, 2});
  of(nn::dense{.units = 1, .use_bias = false}, {1, 1, 7}, 1);
  of(nn::dense{.units = 5, .each_place = true}, {2, 3, 2});
  of(nn::dense{.units = 3, .each_place = true, .use_bias = false}, {1, 4, 2});
  of(nn::conv2d{.filters = 4, .kernel = 3}, {6, 5, 2});
  of(nn::conv2d{.filters = 4, .kernel = {2, 3}, .stride = {2, 1}, .padding = same, .groups = 2}, {5, 5, 4});
  of(nn::conv2d{.filters = 2, .kernel = {3, 4}, .stride = 2, .padding = half}, {6, 6, 2});
  of(nn::conv2d{.filters = 3, .kernel = 1, .use_bias = false}, {3, 3, 4});
  of(nn::conv2d{.filters = 3, .kernel = 2, .train_kernel = false}, {4, 4, 2});
  of(nn::conv2d{.filters = 4, .kernel = 1, .use_bias = false, .train_kernel = false}, {3, 2, 2});
  of(nn::conv2d_transpose{.filters = 4, .kernel = 3}, {4, 3, 2});
  of(nn::conv2d_transpose{.filters = 3, .kernel = {2, 3}, .stride = {2, 1}, .padding = same}, {3, 4, 4});
  of(nn::conv2d_transpose{.filters = 2, .kernel = 2, .stride = 3, .use_bias = false}, {3, 3, 4});
  of(nn::max_pool{.window = 2}, {4, 5, 3});
  of(nn::max_pool{.window = 3, .stride = 2, .padding = same}, {5, 6, 2});
  of(nn::max_pool{.window = {3, 2}, .stride = 2, .padding = half}, {6, 5, 2});
  of(nn::max_pool{.window = {2, 1}, .stride = {1, 2}}, {4, 5, 3});
  of(nn::average_pool{.window = 2}, {4, 5, 3});
  of(nn::average_pool{.window = 3, .stride = 2, .padding = same}, {5, 6, 2});
  of(nn::average_pool{.window = {2, 1}, .stride = {1, 2}}, {4, 5, 3});
  of(nn::global_max_pool{}, {3, 2, 5});
  of(nn::global_average_pool{}, {3, 2, 5});
  of(nn::upsample{}, {3, 2, 4});
  of(nn::upsample{.factor = {1, 3}}, {2, 2, 3});
  of(nn::upsample{.factor = {3, 2}}, {2, 2, 1});

  of(nn::layer_norm{}, {1, 1, 6});
  of(nn::layer_norm{.epsilon = 0.5f}, {2, 3, 4});
  of(nn::rms_norm{}, {1, 1, 6});
  of(nn::rms_norm{.epsilon = 0.5f}, {2, 3, 4});
  of(nn::group_norm{.groups = 1}, {2, 3, 4});
  of(nn::group_norm{.groups = 2, .epsilon = 0.5f}, {3, 2, 6});
  of(nn::group_norm{.groups = 4}, {2, 2, 4});

  of(nn::positions{}, {1, 5, 3});
  of(nn::positions{}, {2, 2, 3});
  of(nn::positions{.most = 7}, {1, 5, 3});
  of(nn::sinusoidal_positions{}, {1, 3, 4});
  of(nn::attention{}, {1, 3, 4});
  of(nn::attention{.heads = 2, .causal = true}, {1, 5, 4});
  of(nn::attention{.heads = 2, .causal = true, .rotary = true}, {1, 5, 8});
  of(nn::attention{.heads = 3, .rotary = true, .use_bias = false}, {2, 3, 6});
  of(nn::attention{.heads = 4, .key_value_heads = 2, .causal = true, .rotary = true, .output_bias = false},
     {1, 5, 8});
  of(nn::attention{.heads = 3, .key_value_heads = 1, .use_bias = false}, {1, 3, 6});
  of(nn::attention{.heads = 2,
                   .key_value_heads = 1,
                   .causal = true,
                   .rotary = true,
                   .interleaved = true,
                   .window = 3,
                   .softcap = 2,
                   .qk_norm = true},
     {1, 5, 8});
  of(nn::attention{.heads = 1, .softcap = 0.5f, .qk_norm = true, .norm_epsilon = 0.1f}, {1, 3, 2});
  of(nn::attention{.heads = 1, .causal = true, .window = 40}, {1, 140, 2}, 1);
  of(nn::attention{.heads = 1, .causal = true}, {1, 70, 2}, 1);
  of(nn::attention{.heads = 1, .rotary = true}, {1, 270, 2}, 1);
  of(nn::attention{.heads = 1, .causal = true}, {1, 270, 2}, 1);
  auto const recurrent = [&]<class L>(L) {
    for (bool const reverse : {false, true})
      for (bool const last : {false, true}) {
        of(L{.units = 3, .reverse = reverse, .last = last}, {1, 4, 2});
        of(L{.units = 5, .reverse = reverse, .last = last}, {1, 1, 2});
      }
    of(L{.units = 9}, {2, 3, 2});
    of(nn::sequential(nn::dense{.units = 3, .each_place = true}, nn::bidirectional(L{.units = 2}),
                      L{.units = 2, .last = true}, nn::dense{.units = 2}),
       {1, 4, 3});
  };
  recurrent(nn::lstm{});
  recurrent(nn::gru{});

  of(nn::factorization_machine{}, {1, 5, 3});
  of(nn::factorization_machine{}, {1, 1, 4});
  of(nn::factorization_machine{}, {1, 3, 9});
  for (int const layers : {1, 2, 3}) {
    for (bool const vectors : {false, true}) {
      nn::cross const l{.layers = layers, .vectors = vectors};
      of(l, {1, 1, 4});
      of(l, {1, 2, 3});
      of(nn::sequential(to_3, l, nn::tanh{}), {1, 1, 4});
    }
    nn::compressed_interaction const l{.layers = layers, .maps = 3};
    of(l, {1, 4, 2});
    of(l, {2, 2, 3});
    of(nn::sequential(nn::dense{.units = 6}, l, nn::tanh{}), {1, 1, 4});
  }
  of(nn::compressed_interaction{.layers = 2, .maps = 2}, {1, 2, 3}, 200);  // more rows than at a time
}

/// Likewise, with layers that are made of others.
template <class Check>
void containers(Check const& of) {
  of(nn::sequential(nn::relu{}), {2, 2, 2});
  of(nn::sequential(nn::dense{.units = 5}, nn::layer_norm{}, nn::tanh{}), {1, 1, 4});
  of(nn::sequential(nn::dense{.units = 6}, nn::group_norm{.groups = 3}, nn::tanh{}), {1, 1, 4});
  of(nn::sequential(nn::conv2d{.filters = 3}, nn::factorization_machine{}), {2, 2, 2});
  of(nn::sequential(nn::residual(nn::sequential(nn::layer_norm{}, nn::attention{.heads = 2})),
                    nn::dense{.units = 3, .each_place = true}),
     {1, 4, 4});
  of(nn::sequential(nn::repeat<2>(nn::residual(nn::sequential(to_3, nn::tanh{}))), nn::dense{.units = 2}),
     {1, 1, 3});
  of(nn::concat(nn::conv2d{.filters = 2, .kernel = 1}, nn::identity{},
                nn::sequential(nn::conv2d{.filters = 3, .kernel = 3, .padding = same}, nn::tanh{})),
     {3, 4, 2});
  of(nn::concat(nn::sum(nn::tanh{}, nn::identity{}), nn::tanh{}), {2, 1, 3});
  of(nn::concat(nn::slice{.first = 0, .count = 1},
                nn::sequential(nn::slice{.first = 1, .count = 3}, nn::tanh{})),
     {1, 2, 4});
  of(nn::sum(to_3, nn::sequential(nn::tanh{}, to_3), to_3), {1, 2, 2});
  // A branch that ends in a fused relu overwrites its gradient; the others get their own.
  of(nn::sum(nn::sequential(to_3, nn::relu{}), to_3, nn::sequential(to_3, nn::relu{})), {1, 2, 2});
  of(nn::product(to_3, nn::sequential(nn::tanh{}, to_3), nn::sequential(to_3, nn::relu{})), {1, 2, 2});
  of(nn::residual(to_3), {1, 1, 3});
  of(nn::residual(nn::sequential(nn::dense{.units = 4}, nn::tanh{}, to_3, nn::sigmoid{})), {1, 1, 3});
  of(nn::residual(nn::residual(nn::tanh{}), nn::sigmoid{}), {1, 2, 3});
  of(nn::residual(to_3, nn::dense{.units = 3, .use_bias = false}), {1, 1, 2});
  of(nn::residual(to_3, nn::sequential(to_3, nn::tanh{})), {1, 1, 2});
  of(nn::residual(nn::residual(to_3), to_3), {1, 1, 3});
  of(nn::residual(nn::conv2d{.filters = 3, .kernel = 3, .stride = 2, .padding = same},
                  nn::sequential(nn::conv2d{.filters = 3, .kernel = 1, .stride = 2}, nn::tanh{})),
     {4, 5, 2});
}

struct gradients {
  template <class L>
  void operator()(L const& l, edl::shape in, int batch = 3) const {
    check_gradients(l, in, training, batch);
  }
};

/// A minibatch gives what its samples give one by one.
struct samples_apart {
  template <class L>
  void operator()(L const& l, edl::shape in, int = 3) const {
    auto const* const of_which = __PRETTY_FUNCTION__;
    CAPTURE(of_which);
    lone_layer<L> all{.l = l, .in = in, .batch = 3}, one{.l = l, .in = in, .batch = 1};
    all.forward();
    all.backward();
    std::vector<double> sums(all.gradients.size());
    for (std::size_t s = 0; s < 3; ++s) {
      auto const part = [&](std::vector<double> const& v) {
        auto const n = std::ptrdiff_t(v.size() / 3);
        return std::vector<double>(v.begin() + n * std::ptrdiff_t(s), v.begin() + n * std::ptrdiff_t(s + 1));
      };
      one.x = part(all.x);
      one.dy = part(all.dy);
      one.forward();
      one.backward();
      CHECK(greatest_difference(one.y, part(all.y)) < 1e-12);
      CHECK(greatest_difference(one.dx, part(all.dx)) < 1e-12);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one.gradients[i];
    }
    CHECK(greatest_difference(sums, all.gradients) < 1e-11);
  }
};

}  // namespace

TEST_CASE("gradients of layers") { layers_of_samples(gradients{}); }

TEST_CASE("gradients of containers") { containers(gradients{}); }

TEST_CASE("gradients of layers that draw, and of those that mix samples or know the mode") {
  for (edl::mode const m : {training, evaluation}) {
    check_gradients(nn::dropout{.rate = 0.4f}, {3, 2, 5}, m);
    check_gradients(nn::attention{.dropout = 0.4f}, {1, 5, 4}, m);
    check_gradients(nn::batch_norm{}, {3, 2, 4}, m);
    check_gradients(nn::batch_norm{.scale = false, .shift_gain = 8}, {3, 2, 4}, m);
  }
  check_gradients(nn::batch_norm{}, {1, 1, 5}, training, 4);
  check_gradients(nn::batch_norm{.scale = false}, {3, 2, 4});
  check_gradients(nn::batch_norm{.shift_gain = 8}, {3, 2, 4});
  check_gradients(nn::attention{.heads = 2, .causal = true, .rotary = true, .dropout = 0.3f}, {1, 6, 8});
  check_gradients(nn::attention{.causal = true, .dropout = 0.5f}, {1, 270, 2}, training, 1);
  check_gradients(nn::sequential(nn::dense{.units = 6}, nn::tanh{}, nn::dense{.units = 4}, nn::batch_norm{}),
                  {1, 2, 3});
  check_gradients(nn::sequential(nn::tanh{}, nn::sequential(nn::dense{.units = 5}, nn::dropout{.rate = 0.3f}),
                                 nn::sequential(nn::sequential(nn::tanh{}), nn::dense{.units = 2})),
                  {1, 2, 3});
}

TEST_CASE("samples of a minibatch know nothing of each other") {
  layers_of_samples(samples_apart{});
  containers(samples_apart{});
}

TEST_CASE("options and inputs that do not fit are found") {
  using enum edl::fit;
  float const zero = 0;
  CHECK(nn::leaky_relu{.slope = -1}.check({1, 1, 1}) == option_out_of_range);
  CHECK(nn::elu{.alpha = -1}.check({1, 1, 1}) == option_out_of_range);
  CHECK(nn::dropout{.rate = 1}.check({1, 1, 1}) == option_out_of_range);  // it leaves nothing
  CHECK(nn::dropout{.rate = -0.1f}.check({1, 1, 1}) == option_out_of_range);
  CHECK(nn::conv2d{.filters = 1, .kernel = 5}.check({4, 9, 1}) == kernel_exceeds_input);
  CHECK(nn::conv2d{.filters = 1, .kernel = 5, .padding = same}.check({4, 9, 1}) == fits);
  CHECK(nn::conv2d{.filters = 1, .kernel = 7, .stride = 2, .padding = half}.output({8, 1, 3}) ==
        edl::shape{4, 1, 1});
  CHECK(nn::conv2d_transpose{.filters = 1, .padding = half}.check({4, 9, 1}) == option_out_of_range);
  CHECK(nn::conv2d{.filters = 4, .kernel = 1, .groups = 2}.check({4, 4, 3}) == groups_do_not_divide_channels);
  CHECK(nn::conv2d{.filters = 3, .kernel = 1, .groups = 2}.check({4, 4, 4}) == groups_do_not_divide_channels);
  CHECK(nn::conv2d{}.check({4, 4, 4}) == option_out_of_range);
  CHECK(nn::conv2d{.filters = 3, .stride = 0}.check({4, 4, 4}) == option_out_of_range);
  CHECK(nn::conv2d_transpose{}.check({4, 4, 4}) == option_out_of_range);
  CHECK(nn::conv2d_transpose{.filters = 3, .stride = 0}.check({4, 4, 4}) == option_out_of_range);
  CHECK(nn::max_pool{.window = 5}.check({4, 9, 1}) == window_exceeds_input);
  CHECK(nn::max_pool{.window = 0}.check({4, 9, 1}) == option_out_of_range);
  CHECK(nn::average_pool{.window = 5}.check({4, 9, 1}) == window_exceeds_input);
  CHECK(nn::average_pool{.window = 0}.check({4, 9, 1}) == option_out_of_range);
  CHECK(nn::pad{.before = {-1, 0}}.check({2, 2, 2}) == option_out_of_range);
  CHECK(nn::pad{.after = {0, -1}}.check({2, 2, 2}) == option_out_of_range);
  CHECK(nn::pad{.channels_after = -1}.check({2, 2, 2}) == option_out_of_range);
  CHECK(nn::pad{.value = 1 / zero}.check({2, 2, 2}) == option_out_of_range);
  CHECK(nn::upsample{.factor = {0, 2}}.check({2, 2, 2}) == option_out_of_range);
  CHECK(nn::layer_norm{.epsilon = 0}.check({1, 1, 3}) == option_out_of_range);
  CHECK(nn::group_norm{}.check({2, 2, 48}) == groups_do_not_divide_channels);
  CHECK(nn::group_norm{}.check({2, 2, 64}) == fits);
  CHECK(nn::group_norm{.groups = 0}.check({2, 2, 64}) == option_out_of_range);
  CHECK(nn::group_norm{.groups = 1, .epsilon = 0}.check({2, 2, 64}) == option_out_of_range);
  CHECK(nn::attention{.heads = 0}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::attention{.heads = 3}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::attention{.heads = 4, .rotary = true}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::attention{.heads = 2, .rotary = true, .rotary_base = 0}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::attention{.heads = 2, .rotary = true, .scaling = {.factor = 0.5f}}.check({1, 3, 4}) ==
        option_out_of_range);
  CHECK(nn::attention{.heads = 4}.check({1, 3, 4}) == fits);
  CHECK(nn::attention{.dropout = 1}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::attention{.dropout = -0.1f}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::lstm{}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::gru{}.check({1, 3, 4}) == option_out_of_range);
  CHECK(nn::cross{.layers = 0}.check({1, 1, 4}) == option_out_of_range);
  CHECK(nn::compressed_interaction{.layers = 0}.check({1, 2, 4}) == option_out_of_range);
  CHECK(nn::compressed_interaction{.maps = 0}.check({1, 2, 4}) == option_out_of_range);
  CHECK(nn::residual(nn::dense{.units = 4}).check({1, 1, 3}) == branches_differ_in_shape);
  CHECK(nn::residual(nn::dense{.units = 4}, nn::dense{.units = 4}).check({1, 1, 3}) == fits);
  CHECK(nn::residual(nn::dense{}).check({1, 1, 3}) == option_out_of_range);
}

}  // namespace all_layers_test
