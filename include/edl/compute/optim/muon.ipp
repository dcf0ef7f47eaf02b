// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/optim/muon.hpp"
#include "edl/compute/optim/name_patterns.hpp"
#include "edl/core/inline.hpp"

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

EDL_INLINE std::optional<matrix_extents> muon::matrix_of(variable const& v) const {
  for (char const* const no_matrix : {"bias", "/embeddings", "/rows"})
    if (v.name.ends_with(no_matrix)) return std::nullopt;
  if (v.dims.rank < 2 || matches_name(adamw_for, v.name)) return std::nullopt;
  auto const columns = std::size_t(v.dims.sizes[std::size_t(v.dims.rank) - 1]);
  matrix_extents const all{v.dims.size() / std::max<std::size_t>(columns, 1), columns};
  return all.rows >= 2 && all.columns >= 2 ? std::optional(all) : std::nullopt;
}

EDL_INLINE void muon::check(parameter_layout const& layout) const {
  if (adamw_for.empty()) return;
  std::vector<std::string> names;
  for (variable const& v : layout.variables)
    if (v.offset < layout.parameters) names.push_back(v.name);
  matching_names(names, adamw_for, "adamw_for of the model's optimizer", "variable that is trained");
}

template <std::floating_point T>
void muon::apply_whole(variable const& of, std::span<T> weights, view<T> gradients,
                       std::span<std::span<T> const> slots, T rate, std::uint64_t step) const {
  auto const shape = matrix_of(of);
  if (!shape) return apply(weights, gradients, slots, rate, step);
  std::size_t const n = weights.size();
  std::vector<T> update(n);
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const m = slots[0].data();
  T* __restrict const u = update.data();
  T const mu = T(momentum), rest = 1 - mu;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = mu * m[i] + rest * g[i];
    u[i] = nesterov ? mu * m[i] + rest * g[i] : m[i];
  }
  orthogonalise<T>(update, shape->rows, shape->columns, newton_schulz_steps, polynomial);
  double keep = 1 - double(rate) * double(weight_decay);
  if (double const norm = norm_before(*shape, step); norm > 0) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += double(w[i]) * double(w[i]);
    keep *= norm / (std::sqrt(squares) + 1e-7);
  }
  T const kept = T(keep), scaled = rate * T(step_size(*shape));
  for (std::size_t i = 0; i < n; ++i) w[i] = kept * w[i] - scaled * u[i];
}

#ifndef EDL_HEADER_ONLY
template void muon::apply_whole(variable const&, std::span<float>, view<float>,
                                std::span<std::span<float> const>, float, std::uint64_t) const;
template void muon::apply_whole(variable const&, std::span<double>, view<double>,
                                std::span<std::span<double> const>, double, std::uint64_t) const;
#endif

}  // namespace edl
