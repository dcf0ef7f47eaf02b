// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "edl/compute/optim/muon.hpp"
#include "edl/compute/optim/name_patterns.hpp"
#include "edl/compute/optim/newton_schulz.hpp"
#include "edl/core/inline.hpp"

namespace edl {

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
