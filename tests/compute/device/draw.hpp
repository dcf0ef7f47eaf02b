// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "edl/core/bfloat16.hpp"
#include "edl/core/random.hpp"

/// Numbers in (-1, 1) that are the same in every run.
template <class T>
std::vector<T> numbers(std::size_t n, std::uint64_t key) {
  std::vector<T> v(n);
  edl::random_stream const random{edl::mix(key, 77), 0};
  for (std::size_t i = 0; i < n; ++i) v[i] = T(2 * random.uniform(i) - 1);
  return v;
}

template <class T, class U>
double greatest_difference(T const& a, U const& b) {
  double most = a.size() == b.size() ? 0 : 1e300;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    double const d = double(a[i]) > double(b[i]) ? double(a[i]) - double(b[i]) : double(b[i]) - double(a[i]);
    if (most == most && !(d <= most)) most = d;  // a NaN stays
  }
  return most;
}

/// The same numbers with 8 bits each.
template <class T>
std::vector<T> rounded(std::vector<T> v) {
  for (T& x : v) x = T(edl::from_bfloat16(edl::to_bfloat16(float(x))));
  return v;
}
