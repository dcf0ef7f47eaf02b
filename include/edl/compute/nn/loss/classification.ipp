// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "edl/compute/device/cpu/exponential.hpp"
#include "edl/compute/nn/loss/classification.hpp"

namespace edl::nn::detail {

/// The sum in double, in four partial sums that a compiler can vectorise.
template <class T>
double sum_of(T const* x, std::size_t n) {
  double parts[4]{};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) parts[k] += double(x[i + k]);
  for (; i < n; ++i) parts[0] += double(x[i]);
  return parts[0] + parts[1] + (parts[2] + parts[3]);
}

template <class T>
T largest_of(view<T> x) {
  using V = typename edl::detail::lanes<T>::type;
  constexpr std::size_t count = edl::detail::lanes<T>::count;
  T largest = x[0];
  std::size_t i = 0;
  if (x.size() >= count) {
    V most = edl::detail::load<V>(x.data());
    for (i = count; i + count <= x.size(); i += count) {
      V const here = edl::detail::load<V>(x.data() + i);
      most = here > most ? here : most;
    }
    for (std::size_t k = 0; k < count; ++k) largest = most[k] > largest ? most[k] : largest;
  }
  for (; i < x.size(); ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

template <std::floating_point T>
logit_sums<T> sums_of_logits(view<T> x) {
  constexpr std::size_t most = 512;
  logit_sums<T> sums{largest_of(x), 0, 0};
  std::array<T, most> part;
  for (std::size_t begin = 0; begin < x.size(); begin += most) {
    std::size_t const n = std::min(most, x.size() - begin);
    for (std::size_t i = 0; i < n; ++i) part[i] = x[begin + i] - sums.largest;
    sums.below += sum_of(part.data(), n);
    edl::detail::by_vectors<T>(n, part.data(), part.data(),
                               [](auto const& v) { return edl::detail::exp_below(v); });
    sums.exps += sum_of(part.data(), n);
  }
  return sums;
}

template <std::floating_point T>
void scaled_exps(view<T> x, T largest, T scale, T shift, std::type_identity_t<std::span<T>> y) {
  edl::detail::by_vectors<T>(x.size(), x.data(), y.data(), [=](auto const& v) {
    return edl::detail::exp_below(v - largest) * scale - shift;
  });
}

#ifndef EDL_HEADER_ONLY
template logit_sums<float> sums_of_logits(view<float>);
template logit_sums<double> sums_of_logits(view<double>);
template void scaled_exps(view<float>, float, float, float, std::span<float>);
template void scaled_exps(view<double>, double, double, double, std::span<double>);
#endif

}  // namespace edl::nn::detail
