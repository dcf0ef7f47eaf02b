// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/fuse.hpp"

#include <type_traits>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/dropout.hpp"
#include "edl/compute/nn/layer/residual.hpp"
#include "edl/compute/nn/layer/sequential.hpp"

namespace fuse_test {

namespace nn = edl::nn;

namespace {

template <class... Layers>
using steps_of = decltype(nn::fuse(std::declval<std::tuple<Layers...> const&>()));

/// Hides what a layer is, so that nothing is fused with it.
template <nn::layer L>
struct plain {
  L l;

  constexpr edl::fit check(edl::shape in) const { return l.check(in); }
  constexpr edl::shape output(edl::shape in) const { return l.output(in); }
  template <class Visit>
  constexpr void variables(edl::shape in, Visit&& visit) const {
    nn::for_each_variable(l, in, visit);
  }
  constexpr std::size_t saved(edl::shape in, int batch) const { return nn::saved_by(l, in, batch); }
  constexpr std::size_t scratch(edl::shape in, int batch) const { return nn::scratch_of(l, in, batch); }
  template <class D>
  void forward(nn::pass<D>& p, nn::forward_args<typename D::scalar> const& a) const {
    l.forward(p, a);
  }
  template <class D>
  void backward(nn::pass<D>& p, nn::backward_args<typename D::scalar> const& a) const {
    l.backward(p, a);
  }
};

/// A chain gives what its layers give one by one, forward and backward, and so do differences.
template <class... Layers>
void check_fused(edl::shape in, Layers... layers) {
  for (auto const m : {edl::mode::training, edl::mode::evaluation}) {
    lone_layer<std::remove_cvref_t<decltype(nn::sequential(layers...))>> fused{.l = nn::sequential(layers...),
                                                                               .in = in};
    lone_layer<std::remove_cvref_t<decltype(nn::sequential(plain<Layers>{layers}...))>> apart{
        .l = nn::sequential(plain<Layers>{layers}...), .in = in};
    fused.mode = apart.mode = m;
    fused.forward(), apart.forward();
    CHECK(greatest_difference(fused.y, apart.y) < 1e-12);
    CHECK(greatest_difference(fused.state, apart.state) < 1e-12);
    fused.backward(), apart.backward();
    CHECK(greatest_difference(fused.dx, apart.dx) < 1e-11);
    CHECK(greatest_difference(fused.gradients, apart.gradients) < 1e-11);
    auto const before = fused.gradients;
    fused.backward(false);
    CHECK(fused.gradients == before);
  }
  check_gradients(nn::sequential(layers...), in);
}

constexpr auto none = edl::activation::none, relu_after = edl::activation::relu;

}  // namespace

TEST_CASE("what follows each other closely is one step") {
  using nn::batch_norm, nn::conv2d, nn::dense, nn::gelu, nn::max_pool, nn::relu, nn::dropout;
  CHECK(std::is_same_v<
        steps_of<conv2d, gelu, max_pool, batch_norm, gelu, max_pool>,
        std::tuple<nn::step<conv2d>, nn::step<gelu>, nn::step<max_pool>,
                   nn::norm_step<false, edl::activation::gelu, nn::no_pool>, nn::step<max_pool>>>);
  CHECK(std::is_same_v<steps_of<relu, batch_norm, nn::silu, max_pool, nn::silu>,
                       std::tuple<nn::step<relu>, nn::norm_step<false, edl::activation::silu, nn::no_pool>,
                                  nn::step<max_pool>, nn::step<nn::silu>>>);
  CHECK(std::is_same_v<steps_of<conv2d, relu, conv2d, relu, batch_norm, max_pool, dropout, dense>,
                       std::tuple<nn::relu_step<conv2d, false>, nn::relu_step<conv2d, true>,
                                  nn::norm_step<true, none, max_pool>, nn::step<dropout>, nn::step<dense>>>);
  CHECK(
      std::is_same_v<steps_of<conv2d, batch_norm, relu, max_pool>,
                     std::tuple<nn::step<conv2d, false, true>, nn::norm_step<false, relu_after, max_pool>>>);
  CHECK(std::is_same_v<
        steps_of<relu, batch_norm, relu, relu>,
        std::tuple<nn::step<relu>, nn::norm_step<false, relu_after, nn::no_pool>, nn::step<relu>>>);
}

TEST_CASE("fused layers compute what they compute apart") {
  edl::shape const in{6, 7, 3};
  check_fused(in, nn::conv2d{.filters = 4, .kernel = 3}, nn::relu{}, nn::tanh{});
  check_fused(in, nn::conv2d{.filters = 4, .kernel = 3}, nn::relu{}, nn::batch_norm{}, nn::max_pool{},
              nn::dense{.units = 3});
  check_fused(in, nn::conv2d{.filters = 9, .kernel = 3}, nn::batch_norm{.scale = false, .shift_gain = 4},
              nn::gelu{}, nn::max_pool{}, nn::dense{.units = 3});
  check_fused(in, nn::conv2d{.filters = 9}, nn::relu{}, nn::batch_norm{}, nn::silu{}, nn::max_pool{});
  check_fused(in, nn::conv2d{.filters = 9, .kernel = 3}, nn::batch_norm{}, nn::relu{},
              nn::max_pool{.window = 3});
  check_fused(in, nn::dense{.units = 9}, nn::relu{}, nn::dense{.units = 3}, nn::batch_norm{}, nn::relu{});
}

TEST_CASE("windows that overlap, are oblong or reach over the border are pooled apart") {
  edl::shape const in{6, 7, 3};
  for (auto const& pool : {nn::max_pool{.window = 3, .stride = 2}, nn::max_pool{.window = {2, 1}},
                           nn::max_pool{.window = 2, .padding = nn::padding::same}}) {
    CHECK(nn::norm_step<false, relu_after, nn::max_pool>{{}, pool}.apart(in));
    check_fused(in, nn::conv2d{.filters = 4, .kernel = 1}, nn::batch_norm{}, nn::relu{}, pool);
  }
  CHECK_FALSE(nn::norm_step<false, relu_after, nn::max_pool>{{}, {}}.apart(in));
}

TEST_CASE("residuals after each other take each other's relu along, and join their sums") {
  auto const body = [](int units) {
    return nn::sequential(nn::dense{.units = units}, nn::batch_norm{}, nn::relu{}, nn::dense{.units = units},
                          nn::batch_norm{});
  };
  check_fused({1, 1, 4}, nn::dense{.units = 4}, nn::relu{}, nn::residual(body(4)), nn::relu{},
              nn::residual(body(6), nn::sequential(nn::dense{.units = 6}, nn::batch_norm{})), nn::relu{},
              nn::residual(body(6)), nn::relu{}, nn::dense{.units = 2});
  check_fused({1, 1, 4}, nn::dense{.units = 4}, nn::relu{},
              nn::residual(nn::sequential(nn::dense{.units = 4}, nn::tanh{})), nn::residual(body(4)),
              nn::tanh{});
  using block = decltype(nn::residual(body(4)));
  CHECK(block::joins);
  CHECK(std::is_same_v<
        steps_of<nn::dense, nn::relu, block, nn::relu, block>,
        std::tuple<nn::relu_step<nn::dense, true>, nn::relu_step<block, true, true>, nn::step<block, true>>>);
}

TEST_CASE("a residual and the relu after it are one step, also where its body overwrites the gradient") {
  edl::shape const in{1, 1, 4};
  check_fused(in, nn::residual(nn::sequential(nn::dense{.units = 4}, nn::batch_norm{})), nn::relu{},
              nn::dense{.units = 2});
  check_fused(in, nn::residual(nn::sequential(nn::dense{.units = 4}, nn::relu{})), nn::relu{});
  check_fused(in, nn::residual(nn::sequential(nn::dense{.units = 5}, nn::relu{}), nn::dense{.units = 5}),
              nn::relu{}, nn::batch_norm{});
}

}  // namespace fuse_test
