// SPDX-License-Identifier: Apache-2.0
#include "cuda/geometry.hpp"
#include "cuda/kernels/board.hpp"

namespace kernel_gradient_test {

using edl::conv_geometry;

namespace {

/// By the definition.
std::vector<double> expected(conv_geometry const& g, int batch, std::vector<float> const& x,
                             std::vector<float> const& dy) {
  auto const in = std::size_t(g.in.channels), out = std::size_t(g.out.channels);
  std::vector<double> sums(g.patch() * out, 0.0);
  for (int n = 0; n < batch; ++n)
    for (int p = 0; p < g.out.height; ++p)
      for (int q = 0; q < g.out.width; ++q)
        for (int a = 0; a < g.kernel.height; ++a)
          for (int b = 0; b < g.kernel.width; ++b) {
            int const row = p * g.stride.height - g.before.height + a,
                      column = q * g.stride.width - g.before.width + b;
            if (row < 0 || column < 0 || row >= g.in.height || column >= g.in.width) continue;
            float const* const xs =
                &x[(std::size_t(n) * g.in.size()) + std::size_t(row * g.in.width + column) * in];
            float const* const ys =
                &dy[(std::size_t(n) * g.out.size()) + std::size_t(p * g.out.width + q) * out];
            double* const to = &sums[std::size_t(a * g.kernel.width + b) * in * out];
            for (std::size_t c = 0; c < in; ++c)
              for (std::size_t k = 0; k < out; ++k) to[c * out + k] += double(xs[c]) * double(ys[k]);
          }
  return sums;
}

void compare(conv_geometry const& g, int batch, int processors, std::size_t before, bool half = true) {
  std::string const text = text_of(g, batch);
  CAPTURE(text);
  CAPTURE(half);
  std::size_t const n = g.patch() * std::size_t(g.out.channels);
  for (bool const backwards : {false, true}) {
    CAPTURE(backwards);
    edl::cuda_double::reverse(backwards);
    gpu board(half, processors);
    auto const x = rounded(numbers<float>(std::size_t(batch) * g.in.size(), 1)),
               dy = rounded(numbers<float>(std::size_t(batch) * g.out.size(), 2));
    auto* const to = board.room<float>(n);
    auto* const scratch = board.room<float>(kernels::kernel_gradient_scratch(board.q, g, batch));
    kernels::kernel_gradient(board.q, g, batch, board.put_activations(x, before),
                             board.put_activations(dy, before), to, scratch);
    CHECK(close(board.get(to, n), expected(g, batch, x, dy), false, 1e-5));
  }
  edl::cuda_double::reverse(false);
}

}  // namespace

TEST_CASE("gradients of kernels by tensor cores are sums of products, whatever the extents") {
  conv_geometry const cases[] = {
      {{32, 32, 16}, {32, 32, 16}, 3, 1, 1, 1},        // a residual network's
      {{16, 16, 32}, {8, 8, 64}, 3, 2, {0, 0}, 1},     // more after than before
      {{8, 8, 64}, {8, 8, 64}, 3, 1, 1, 1},            // several rows at a time
      {{28, 28, 1}, {26, 26, 32}, 3, 1, 0, 1},         // one channel
      {{9, 7, 130}, {9, 7, 33}, 3, 1, 1, 1},           // not in whole tiles
      {{5, 100, 3}, {5, 96, 5}, {1, 5}, 1, 0, 1},      // long rows
      {{6, 6, 8}, {3, 3, 8}, 1, 2, 0, 1},              // pointwise, strided
      {{12, 11, 4}, {6, 8, 20}, {2, 4}, {2, 1}, 0, 1}  // oblong
  };
  for (bool const half : {false, true})
    for (conv_geometry const& g : cases) {
      REQUIRE(kernels::tensor_cores_take(g, half));
      compare(g, 2, 3, 0, half);
    }
  compare({{2, 2, 5}, {2, 2, 7}, 3, 1, 1, 1}, 1025, 1, 0);   // many samples
  compare({{4, 4, 16}, {4, 4, 16}, 3, 1, 1, 1}, 1, 200, 0);  // more processors than rows
  compare({{4, 4, 16}, {4, 4, 16}, 3, 1, 1, 1}, 2, 2, 1);    // nothing is aligned
}

TEST_CASE("any gradient of a kernel that tensor cores take is the sum of its products") {
  convolution_lottery draw(31);
  for (int i = 0; i < 30; ++i) {
    int const channels = draw.upto(draw.upto(2) == 1 ? 130 : 8), filters = draw.upto(40);
    conv_geometry const g = draw({5, 7}, 3, channels, filters);
    bool const half = draw.upto(2) == 1;
    REQUIRE(kernels::tensor_cores_take(g, half));
    compare(g, draw.upto(5), draw.upto(8), std::size_t(draw.upto(2) - 1), half);
  }
}

TEST_CASE("tensor cores do not take groups, long rows, wide kernels and strides") {
  CHECK_FALSE(kernels::tensor_cores_take({{8, 8, 8}, {8, 8, 8}, 3, 1, 1, 2}, true));
  CHECK_FALSE(kernels::tensor_cores_take({{8, 200, 8}, {8, 200, 8}, 3, 1, 1, 1}, true));
  CHECK_FALSE(kernels::tensor_cores_take({{9, 9, 8}, {1, 1, 8}, 9, 1, 0, 1}, true));
  CHECK_FALSE(kernels::tensor_cores_take({{9, 9, 8}, {2, 2, 8}, 3, 4, 0, 1}, true));
}

TEST_CASE("gradients of kernels have the same bits in every run") {
  conv_geometry const g{{10, 10, 24}, {10, 10, 24}, 3, 1, 1, 1};
  std::vector<float> runs[2];
  for (auto& run : runs) {
    gpu board(true, 5);
    std::size_t const n = g.patch() * 24;
    auto* const to = board.room<float>(n);
    auto* const scratch = board.room<float>(kernels::kernel_gradient_scratch(board.q, g, 7));
    kernels::kernel_gradient(board.q, g, 7, board.put_activations(board.draw<float>(7 * g.in.size(), 1)),
                             board.put_activations(board.draw<float>(7 * g.out.size(), 2)), to, scratch);
    run = board.get(to, n);
  }
  CHECK(runs[0] == runs[1]);
}

}  // namespace kernel_gradient_test
