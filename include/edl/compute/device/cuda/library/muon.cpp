// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "edl/compute/device/cuda/library/choose.hpp"
#include "edl/compute/device/cuda/library/engine.hpp"

namespace edl::cuda_library {
namespace {

/// Elements whose products take about as long as it does to start them.
constexpr std::size_t most_padded = std::size_t(4) << 20;

std::size_t height_of(muon_matrix const* m) { return std::max(m->rows, m->columns); }
std::size_t width_of(muon_matrix const* m) { return std::min(m->rows, m->columns); }
std::size_t padded(std::size_t n) { return (n + 7) / 8 * 8; }

/// The first of these, the largest first, that are one product: those of one shape, and others where padding
/// is little work.
std::size_t taken_together(std::span<muon_matrix const* const> all) {
  std::size_t h = 0, w = 0, count = 0;
  for (muon_matrix const* m : all) {
    std::size_t const next_h = std::max(h, height_of(m)), next_w = std::max(w, width_of(m));
    bool const alike = height_of(m) == height_of(all[0]) && width_of(m) == width_of(all[0]);
    bool const little = (count + 1) * padded(next_h) * padded(next_w) <= most_padded;
    if (count == cuda_kernels::muon_batch::most || (!alike && !little)) break;
    h = next_h, w = next_w, ++count;
  }
  return count;
}

}  // namespace

void engine::muon(muon_step const& how, std::span<muon_matrix const> of) {
  std::vector<muon_matrix const*> order;
  for (muon_matrix const& m : of) {
    step_of(m.weights, 2 * m.momentum.size());
    order.push_back(&m);
  }
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](auto const* m) { return std::pair(m->weights.size(), height_of(m)); });
  for (std::span<muon_matrix const* const> left = order; !left.empty();) {
    std::size_t const count = taken_together(left);
    muon_together(how, left.first(count));
    left = left.subspan(count);
  }
}

/// x ← x · (a + b · xᵀx + c · (xᵀx)²), where x is at least as high as wide. What libraries multiply are
/// activations, and sums are float32.
void engine::muon_together(muon_step const& how, std::span<muon_matrix const* const> of) {
  cuda_kernels::muon_batch batch{.count = unsigned(of.size())};
  std::size_t all = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    muon_matrix const& m = *of[i];
    batch.part[i] = {.weights = m.weights.data(),
                     .rounded = rounded(m.weights.data()),
                     .gradients = m.gradients.data(),
                     .momentum = m.momentum.data(),
                     .first = all,
                     .rows = unsigned(m.rows),
                     .columns = unsigned(m.columns),
                     .keep = m.keep,
                     .rate = m.rate,
                     .norm = m.norm};
    all += m.weights.size();
    batch.high = std::max(batch.high, padded(height_of(&m)));
    batch.wide = std::max(batch.wide, padded(width_of(&m)));
  }
  std::size_t const count = of.size(), n = batch.wide, k = batch.high, x_size = count * k * n * sizeof(float),
                    squared = count * n * n;
  room r;
  std::size_t const u_at = r.add(all * sizeof(float)),
                    squares_at = r.add(cuda_kernels::muon_sums(queue_, batch.count) * sizeof(float)),
                    x_at = r.add(x_size), next_at = r.add(x_size), gram_at = r.add(squared * sizeof(float)),
                    square_at = r.add(squared * sizeof(float)), factor_at = r.add(squared * sizeof(float)),
                    small_at = r.add(squared * sizeof(float));
  auto* const base = reinterpret_cast<std::byte*>(grown(matrices_, r.floats()));
  auto const floats = [&](std::size_t at) { return reinterpret_cast<float*>(base + at); };
  float *const u = floats(u_at), *const squares = floats(squares_at), *const gram = floats(gram_at),
               *const square = floats(square_at), *const factor = floats(factor_at);
  auto* const small = queue_.half ? reinterpret_cast<std::uint16_t*>(base + small_at) : nullptr;
  void *x = base + x_at, *next = base + next_at;
  cuda_kernels::muon_momentum(queue_, batch, how.momentum, how.nesterov, u, squares);
  cuda_kernels::muon_begin(queue_, batch, u, squares, x);
  auto const [a, b, c] = how.polynomial;
  for (int i = 0; i < how.iterations; ++i) {
    products_->weights_each(count, k, n, n, x, x, gram);
    void const* factors = gram;
    if (small) cuda_kernels::store(queue_, gram, small, squared), factors = small;
    products_->weights_each(count, n, n, n, factors, factors, square);
    cuda_kernels::muon_factor(queue_, batch, float(a), float(b), float(c), gram, square, factor, small);
    products_->forward_each(count, k, n, n, x, factor, small, next);
    std::swap(x, next);
  }
  cuda_kernels::muon_finish(queue_, batch, x, squares);
}

}  // namespace edl::cuda_library
