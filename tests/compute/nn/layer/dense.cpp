// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/dense.hpp"

#include <vector>

#include "compute/device/draw.hpp"
#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"

namespace dense_test {

namespace nn = edl::nn;

TEST_CASE("a dense layer flattens what it gets") {
  nn::dense const l{.units = 10};
  CHECK(l.output({3, 4, 5}) == edl::shape{1, 1, 10});
  CHECK(nn::count(l, {3, 4, 5}).parameters == 60 * 10 + 10);
  CHECK(nn::count(nn::dense{.units = 10, .use_bias = false}, {3, 4, 5}).parameters == 600);
  CHECK(nn::dense{}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

TEST_CASE("a dense layer of each place has one kernel for all places") {
  nn::dense const l{.units = 2, .each_place = true};
  CHECK(l.output({3, 4, 5}) == edl::shape{3, 4, 2});
  CHECK(nn::count(l, {3, 4, 5}).parameters == 5 * 2 + 2);
  lone_layer<nn::dense> h{.l = l, .in = {1, 2, 2}, .batch = 1};
  h.x = {1, 2, 3, 4};
  h.parameters = {1, 0, 1, 1, /*bias*/ 0, 10};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 12, 7, 14});
}

namespace {

/// What a layer says, and its gradients, in bfloat16 by kernels of edl's own.
template <class L>
std::vector<float> in_bfloat16(L const& l, edl::shape in, edl::precision p) {
  edl::cpu cpu({.kernels = edl::kernels::own, .precision = p});
  edl::shape const out = l.output(in);
  auto const n = nn::count(l, in).parameters;
  auto const x = numbers<float>(2 * in.size(), 1), w = numbers<float>(n, 2),
             dy = numbers<float>(2 * out.size(), 3);
  std::vector<float> y(dy.size()), dx(x.size()), dw(n), all, slope = dy;
  nn::pass<edl::cpu> pass{.device = cpu, .mode = edl::mode::training, .random = {1, 0}, .scratch = {}};
  l.forward(pass, {in, out, 2, x, w, {}, y, {}});
  l.backward(pass, {in, out, 2, x, {}, slope, w, {}, dx, dw, {}});
  for (auto const* part : {&y, &dx, &dw}) all.insert(all.end(), part->begin(), part->end());
  return all;
}

}  // namespace

TEST_CASE("a layer that asks for float32 is not rounded") {
  using enum edl::precision;
  edl::shape const in{3, 3, 4};
  nn::dense const plain{.units = 5}, exact{.units = 5, .float32 = true};
  CHECK(in_bfloat16(exact, in, bfloat16) == in_bfloat16(exact, in, float32));
  CHECK(in_bfloat16(plain, in, bfloat16) != in_bfloat16(plain, in, float32));
  nn::conv2d const filters{.filters = 3, .kernel = 2},
      exact_filters{.filters = 3, .kernel = 2, .float32 = true};
  CHECK(in_bfloat16(exact_filters, in, bfloat16) == in_bfloat16(exact_filters, in, float32));
  CHECK(in_bfloat16(filters, in, bfloat16) != in_bfloat16(filters, in, float32));
}

}  // namespace dense_test
