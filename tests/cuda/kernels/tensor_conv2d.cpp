// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "cuda/geometry.hpp"
#include "cuda/kernels/board.hpp"

namespace tensor_conv2d_test {

using edl::activation, edl::conv_geometry;

namespace {

/// visit(element of x, of the kernel, of y) for each product of a convolution.
template <class Visit>
void for_each_product(conv_geometry const& g, int batch, Visit&& visit) {
  auto const in = std::size_t(g.in.channels), out = std::size_t(g.out.channels);
  for (int n = 0; n < batch; ++n)
    for (int p = 0; p < g.out.height; ++p)
      for (int q = 0; q < g.out.width; ++q)
        for (int a = 0; a < g.kernel.height; ++a)
          for (int b = 0; b < g.kernel.width; ++b) {
            int const row = p * g.stride.height - g.before.height + a,
                      column = q * g.stride.width - g.before.width + b;
            if (row < 0 || column < 0 || row >= g.in.height || column >= g.in.width) continue;
            std::size_t const x = std::size_t(n) * g.in.size() + std::size_t(row * g.in.width + column) * in,
                              y = std::size_t(n) * g.out.size() + std::size_t(p * g.out.width + q) * out,
                              w = std::size_t(a * g.kernel.width + b) * in * out;
            for (std::size_t c = 0; c < in; ++c)
              for (std::size_t k = 0; k < out; ++k) visit(x + c, w + c * out + k, y + k);
          }
}

struct arguments {
  int processors = 3;
  std::size_t before = 0;  ///< elements in front of what is read and written
  activation f = activation::none;
  bool bias = false, half = true, half_kernel = true;  ///< activations, and weights, are bfloat16
  float shift = 0;                                     ///< of the biases
};

/// Whether moments in parts are those of y, of so many columns.
bool are_moments(gpu& board, kernels::moments_in_parts const& m, std::vector<float> const& y,
                 std::size_t columns) {
  REQUIRE(m.counted);
  std::size_t const rows = y.size() / columns, parts = m.parts;
  auto const found = board.get(m.at, parts * (2 * columns + 1));
  std::vector<double> mean(columns), squares(columns), wanted_mean(columns), wanted_squares(columns);
  double all = 0;
  for (std::size_t p = 0; p < parts; ++p) all += double(found[parts * 2 * columns + p]);
  if (all != double(rows)) return false;
  for (std::size_t c = 0; c < columns; ++c) {
    auto const of = [&](std::size_t p, std::size_t which) {
      return double(found[(p * 2 + which) * columns + c]);
    };
    auto const count = [&](std::size_t p) { return double(found[parts * 2 * columns + p]); };
    for (std::size_t p = 0; p < parts; ++p) mean[c] += of(p, 0) * count(p) / all;
    for (std::size_t p = 0; p < parts; ++p)
      squares[c] += of(p, 1) + count(p) * (of(p, 0) - mean[c]) * (of(p, 0) - mean[c]);
    for (std::size_t r = 0; r < rows; ++r) wanted_mean[c] += double(y[r * columns + c]) / all;
    for (std::size_t r = 0; r < rows; ++r)
      wanted_squares[c] += std::pow(double(y[r * columns + c]) - wanted_mean[c], 2);
  }
  return close(mean, wanted_mean, false, 1e-6) && close(squares, wanted_squares, false, 1e-5);
}

void compare(conv_geometry const& g, int batch, arguments const& a) {
  std::string const text = text_of(g, batch);
  CAPTURE(text);
  CAPTURE(a.half);
  CAPTURE(a.half_kernel);
  CAPTURE(a.before);
  auto const filters = std::size_t(g.out.channels);
  for (bool const backwards : {false, true}) {
    CAPTURE(backwards);
    edl::cuda_double::reverse(backwards);
    gpu board(a.half, a.processors);
    auto const n = std::size_t(batch);
    auto const x = rounded(numbers<float>(n * g.in.size(), 1)),
               w = rounded(numbers<float>(g.patch() * filters, 2)),
               dy = rounded(numbers<float>(n * g.out.size(), 3)), more = rounded(numbers<float>(x.size(), 5));
    auto bias = rounded(numbers<float>(filters, 4));
    for (float& each : bias) each += a.shift;
    bool const half_kernel = a.half && a.half_kernel;
    void const* const kernel = half_kernel ? board.put_activations(w, a.before) : board.put(w, a.before);
    if (kernels::tensor_conv2d_takes(g, false)) {
      std::vector<double> wanted(dy.size());
      if (a.bias)
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = double(bias[i % filters]);
      for_each_product(g, batch, [&](std::size_t i, std::size_t k, std::size_t o) {
        wanted[o] += double(x[i]) * double(w[k]);
      });
      if (a.f == activation::relu)
        for (double& v : wanted) v = std::max(v, 0.0);
      void* const y = board.activations(dy.size(), a.before);
      void const* const from = board.put_activations(x, a.before);
      float const* const shifts = a.bias ? board.put(bias, a.before) : nullptr;
      if (a.f == activation::none) {  // normalised, most often
        auto* const moments = board.room<float>(kernels::moments_floats(board.q, filters));
        auto const found =
            kernels::tensor_conv2d_moments(board.q, g, batch, from, kernel, half_kernel, shifts, y, moments);
        CHECK(are_moments(board, found, board.get_activations(y, dy.size()), filters));
      } else {
        kernels::tensor_conv2d_forward(board.q, g, batch, a.f, from, kernel, half_kernel, shifts, y);
      }
      CHECK(close(board.get_activations(y, dy.size()), wanted, a.half, 1e-5));
    }
    if (kernels::tensor_conv2d_takes(g, true)) {
      std::vector<double> wanted(x.size());
      for_each_product(g, batch, [&](std::size_t i, std::size_t k, std::size_t o) {
        wanted[i] += double(dy[o]) * double(w[k]);
      });
      bool const masked = a.bias && a.f == activation::relu;
      for (std::size_t i = 0; i < wanted.size() && a.bias; ++i)
        wanted[i] = masked && !(x[i] > 0) ? 0 : wanted[i] + double(more[i]);
      void* const dx = board.activations(x.size(), a.before);
      kernels::tensor_conv2d_data(board.q, g, batch, kernel, half_kernel, board.put_activations(dy, a.before),
                                  dx, a.bias ? board.put_activations(more, a.before) : nullptr,
                                  masked ? board.put_activations(x, a.before) : nullptr);
      CHECK(close(board.get_activations(dx, x.size()), wanted, a.half, 1e-5));
    }
  }
  edl::cuda_double::reverse(false);
}

}  // namespace

TEST_CASE("convolutions by tensor cores, and gradients of images, are sums of products") {
  conv_geometry const cases[] = {
      {{32, 32, 16}, {32, 32, 16}, 3, 1, 1, 1},        // a residual network's: several blocks of a sample
      {{32, 32, 3}, {32, 32, 64}, 3, 1, 1, 1},         // its first
      {{16, 16, 32}, {8, 8, 64}, 3, 2, {0, 0}, 1},     // more after than before
      {{16, 16, 16}, {8, 8, 32}, 1, 2, 0, 1},          // pointwise, strided
      {{8, 8, 64}, {8, 8, 64}, 3, 1, 1, 1},            // several samples of a block
      {{9, 7, 130}, {9, 7, 33}, 3, 1, 1, 1},           // not in whole tiles
      {{28, 28, 1}, {26, 26, 32}, 3, 1, 0, 1},         // one channel
      {{12, 11, 4}, {6, 8, 20}, {2, 4}, {2, 1}, 0, 1}  // oblong
  };
  for (conv_geometry const& g : cases) {
    REQUIRE(kernels::tensor_conv2d_takes(g, false));
    REQUIRE(kernels::tensor_conv2d_takes(g, true));
    for (bool const half : {false, true}) compare(g, 2, {.f = activation::relu, .bias = true, .half = half});
  }
  compare({{2, 2, 5}, {2, 2, 7}, 3, 1, 1, 1}, 1025, {.processors = 1});  // many samples
  compare(cases[4], 3, {.bias = true, .half = false, .shift = 300});     // a mean far from 0
  compare({{4, 4, 16}, {4, 4, 16}, 3, 1, 1, 1}, 2, {.processors = 200, .before = 1});
}

TEST_CASE("any convolution that tensor cores take is the sum of its products") {
  convolution_lottery draw(32);
  for (int i = 0; i < 40; ++i) {
    int const channels = draw.upto(draw.upto(2) == 1 ? 130 : 8),
              filters = draw.upto(draw.upto(2) == 1 ? 130 : 20);
    conv_geometry const g = draw(5, 3, channels, filters);
    REQUIRE(kernels::tensor_conv2d_takes(g, false));
    REQUIRE(kernels::tensor_conv2d_takes(g, true));
    compare(g, draw.upto(5),
            {.processors = draw.upto(8),
             .before = std::size_t(draw.upto(2) - 1),
             .f = draw.upto(2) == 1 ? activation::relu : activation::none,
             .bias = draw.upto(2) == 1,
             .half = draw.upto(2) == 1,
             .half_kernel = draw.upto(2) == 1});
  }
}

TEST_CASE("tensor cores convolve no groups, long rows, large kernels and far strides") {
  CHECK_FALSE(kernels::tensor_conv2d_takes({{8, 8, 8}, {8, 8, 8}, 3, 1, 1, 2}, false));
  CHECK_FALSE(kernels::tensor_conv2d_takes({{8, 600, 8}, {8, 600, 8}, 3, 1, 1, 1}, false));
  CHECK_FALSE(kernels::tensor_conv2d_takes({{9, 9, 8}, {3, 3, 8}, 7, 1, 0, 1}, false));
  CHECK_FALSE(kernels::tensor_conv2d_takes({{9, 9, 8}, {2, 2, 8}, 3, 4, 0, 1}, true));
}

TEST_CASE("a normalisation takes the moments that a convolution found") {
  conv_geometry const g{{8, 8, 8}, {8, 8, 24}, 3, 1, 1, 1};
  edl::norm_chain const chain{.in = g.out, .f = activation::relu};
  std::vector<float> results[2], means[2];
  for (bool const known : {false, true}) {
    gpu board(true);
    void* const y = board.activations(3 * g.out.size());
    auto const found = kernels::tensor_conv2d_moments(
        board.q, g, 3, board.put_activations(board.draw<float>(3 * g.in.size(), 1)),
        board.put(board.draw<float>(g.patch() * 24, 2)), false, nullptr, y,
        board.room<float>(kernels::moments_floats(board.q, 24)));
    std::vector<float> const ones(24, 1), zeros(24, 0);
    float *const mean = board.put(zeros), *const variance = board.put(ones);
    void* const z = board.activations(3 * g.out.size());
    kernels::batch_norm_train(board.q, chain, 3, 0.5f, 1e-3f, y, board.put(ones), board.put(zeros), nullptr,
                              mean, variance, z, board.room<float>(48),
                              known ? found : kernels::moments_in_parts{},
                              board.room<float>(kernels::batch_norm_scratch(board.q, chain, 3)));
    results[known] = board.get_activations(z, 3 * g.out.size());
    means[known] = board.get(mean, 24);
    auto const variances = board.get(variance, 24);
    means[known].insert(means[known].end(), variances.begin(), variances.end());
  }
  CHECK(close(results[1], results[0], true, 1e-6));
  CHECK(close(means[1], means[0], false, 1e-6));
}

TEST_CASE("float32 is rounded to the nearest number of 11 bits for tensor cores") {
  conv_geometry const g{{6, 6, 12}, {6, 6, 20}, 3, 1, 1, 1};
  auto const to_11_bits = [](std::vector<float> v) {
    for (float& x : v) x = std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000) & ~0x1fffu);
    return v;
  };
  auto const x = numbers<float>(2 * g.in.size(), 1), w = numbers<float>(g.patch() * 20, 2);
  auto const xs = to_11_bits(x), ws = to_11_bits(w);
  std::vector<double> wanted(2 * g.out.size());
  for_each_product(
      g, 2, [&](std::size_t i, std::size_t k, std::size_t o) { wanted[o] += double(xs[i]) * double(ws[k]); });
  gpu board;
  void* const y = board.activations(wanted.size());
  kernels::tensor_conv2d_forward(board.q, g, 2, activation::none, board.put_activations(x), board.put(w),
                                 false, nullptr, y);
  CHECK(close(board.get_activations(y, wanted.size()), wanted, false, 1e-6));
}

TEST_CASE("what is no number stays with the results that it belongs to") {
  conv_geometry const g{{8, 8, 8}, {8, 8, 8}, 3, 1, 1, 1};
  gpu board(true);
  auto x = board.draw<float>(2 * g.in.size(), 1);
  x[0] = NAN;  // of the first sample's first pixel, which four pixels see
  void* const y = board.activations(2 * g.out.size());
  kernels::tensor_conv2d_forward(board.q, g, 2, activation::relu, board.put_activations(x),
                                 board.put(board.draw<float>(g.patch() * 8, 2)), false, nullptr, y);
  auto const got = board.get_activations(y, 2 * g.out.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::size_t const pixel = i / 8;
    CHECK(std::isnan(got[i]) == (pixel < 64 && pixel % 8 < 2 && pixel / 8 < 2));
  }
}

}  // namespace tensor_conv2d_test
