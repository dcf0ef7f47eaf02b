// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/optim/newton_schulz.hpp"

namespace edl {

namespace detail {

/// c (n × n) = a (n × k) · b (k × n), which is symmetric: what is above the diagonal is computed, in strips.
template <class T>
void multiply_symmetric(basic_cpu<T>& cpu, std::size_t n, std::size_t k, matrix<T> a, matrix<T> b,
                        std::vector<T>& c) {
  constexpr std::size_t strip = 96;
  c.assign(n * n, T(0));
  for (std::size_t i = 0; i < n; i += strip) {
    matrix<T> const rows{a.data + i * (a.transposed ? 1 : a.stride), a.stride, a.transposed};
    matrix<T> const columns{b.data + i * (b.transposed ? b.stride : 1), b.stride, b.transposed};
    multiply_add<T>(cpu, 0, std::min(strip, n - i), n - i, k, rows, columns, &c[i * n + i], n);
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) c[i * n + j] = c[j * n + i];
}

}  // namespace detail

template <std::floating_point T>
void orthogonalise(std::span<T> x, std::size_t rows, std::size_t columns, int steps,
                   newton_schulz_polynomial const& polynomial) {
  auto const [a, b, c] = polynomial;
  constexpr double epsilon = 1e-7;
  double squares = 0;
  for (T const e : x) squares += double(e) * double(e);
  T const scale = T(1 / (std::sqrt(squares) + epsilon));
  for (T& e : x) e *= scale;
  // The smaller of the two products of x with itself has the same singular values.
  bool const wide = rows <= columns;
  std::size_t const n = wide ? rows : columns, k = wide ? columns : rows;
  basic_cpu<T> on;  // one thread: several matrices are treated side by side
  std::vector<T> gram, square, next;
  for (int step = 0; step < steps; ++step) {
    matrix<T> const plain{x.data(), columns, false}, turned{x.data(), columns, true};
    detail::multiply_symmetric(on, n, k, wide ? plain : turned, wide ? turned : plain, gram);
    matrix<T> const g{gram.data(), n, false};
    detail::multiply_symmetric(on, n, n, g, g, square);
    for (std::size_t i = 0; i < n * n; ++i) square[i] = T(b) * gram[i] + T(c) * square[i];
    for (std::size_t i = 0; i < n; ++i) square[i * n + i] += T(a);
    matrix<T> const factor{square.data(), n, false};
    next.assign(x.size(), T(0));
    multiply_add<T>(on, 0, rows, columns, n, wide ? factor : plain, wide ? plain : factor, next.data(),
                    columns);
    std::ranges::copy(next, x.begin());
  }
}

#ifndef EDL_HEADER_ONLY
template void orthogonalise(std::span<float>, std::size_t, std::size_t, int, newton_schulz_polynomial const&);
template void orthogonalise(std::span<double>, std::size_t, std::size_t, int,
                            newton_schulz_polynomial const&);
#endif

}  // namespace edl
