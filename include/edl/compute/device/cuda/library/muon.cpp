// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "edl/compute/device/cuda/library/choose.hpp"
#include "edl/compute/device/cuda/library/engine.hpp"

namespace edl::cuda_library {

/// x ← x · (a + b · xᵀx + c · (xᵀx)²), where x is at least as high as wide. What libraries multiply are
/// activations, and sums are float32.
void engine::muon(muon_step const &how, out weights, in gradients, out momentum) {
  step_of(weights, 2 * momentum.size());
  std::size_t const all = weights.size(), n = std::min(how.rows, how.columns),
                    k = std::max(how.rows, how.columns);
  room r;
  std::size_t const u_at = r.add(all * sizeof(float)),
                    squares_at = r.add(cuda_kernels::norm_parts(queue_) * sizeof(float)),
                    x_at = r.add(all * sizeof(float)), next_at = r.add(all * sizeof(float)),
                    gram_at = r.add(n * n * sizeof(float)), square_at = r.add(n * n * sizeof(float)),
                    factor_at = r.add(n * n * sizeof(float)), small_at = r.add(n * n * sizeof(float));
  auto *const base = reinterpret_cast<std::byte *>(grown(matrices_, r.floats()));
  auto const floats = [&](std::size_t at) { return reinterpret_cast<float *>(base + at); };
  float *const u = floats(u_at), *const squares = floats(squares_at), *const gram = floats(gram_at),
               *const square = floats(square_at), *const factor = floats(factor_at);
  void *x = base + x_at, *next = base + next_at, *const small = base + small_at;
  cuda_kernels::muon_momentum(queue_, all, how.momentum, how.nesterov, gradients.data(), momentum.data(), u,
                              squares);
  cuda_kernels::muon_begin(queue_, how.rows, how.columns, u, squares, x);
  auto const [a, b, c] = how.polynomial;
  for (int i = 0; i < how.iterations; ++i) {
    products_->dense_backward(k, n, n, x, nullptr, x, nullptr, gram, nullptr);
    cuda_kernels::store(queue_, gram, small, n * n);
    products_->dense_backward(n, n, n, small, nullptr, small, nullptr, square, nullptr);
    cuda_kernels::muon_factor(queue_, n, float(a), float(b), float(c), gram, square, factor);
    products_->dense_forward(k, n, n, activation::none, x, factor, nullptr, next);
    std::swap(x, next);
  }
  cuda_kernels::muon_finish(queue_, how.rows, how.columns, x, how.keep, how.rate, weights.data(),
                            rounded(weights.data()));
}

}  // namespace edl::cuda_library
