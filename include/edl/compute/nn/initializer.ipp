// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <type_traits>

#include "edl/compute/nn/initializer.hpp"
#include "edl/core/inline.hpp"

namespace edl::nn {
namespace detail {

/// One draw serves four uniform elements.
template <class T>
void fill_uniform(double low, double high, random_stream const& random, std::size_t first, std::span<T> to) {
  random_stream::block_type block{};
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::size_t const element = first + i;
    if (i == 0 || element % 4 == 0) block = random.block(element / 4);
    to[i] = T(low + (high - low) * (double(block[element % 4] >> 8) * 0x1p-24));
  }
}

template <class T>
void fill_truncated(double mean, double stddev, random_stream const& random, std::size_t first,
                    std::span<T> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    // Every try has its own stream. One in 22 is rejected; 64 rejections in a row do not happen.
    double z = 3;
    for (std::uint64_t attempt = 0; std::abs(z) > 2 && attempt < 64; ++attempt)
      z = random.child(attempt).normal(first + i);
    to[i] = T(mean + stddev * z);
  }
}

template <class T>
void fill_passing(extents const& dims, random_stream const& random, std::size_t first, std::span<T> to) {
  auto const extent_from_last = [&](int i) {
    return dims.rank > i ? std::size_t(dims.sizes[std::size_t(dims.rank - 1 - i)]) : 1;
  };
  std::size_t const filters = extent_from_last(0), channels = extent_from_last(1),
                    width = extent_from_last(2), height = extent_from_last(3), window = width * height;
  double const limit = 1 / std::sqrt(double(window * channels));
  fill_uniform(-limit, limit, random, first, to);
  std::size_t const middle = height / 2 * width + width / 2;
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::size_t const filter = (first + i) % filters, channel = (first + i) / filters % channels;
    if (filter < channels) to[i] = T((first + i) / (filters * channels) == middle && filter == channel);
  }
}

/// The standard deviation of a standard normal distribution truncated at ±2.
inline constexpr double truncated_deviation = 0.87962566103423978;

}  // namespace detail

template <class T>
void fill(initializer const& how, extents const& dims, random_stream const& random, std::size_t first,
          std::span<T> to) {
  fans const of(dims);
  auto const within = [&](double limit) { detail::fill_uniform(-limit, limit, random, first, to); };
  auto const around = [&](double variance) {
    detail::fill_truncated(0.0, std::sqrt(variance) / detail::truncated_deviation, random, first, to);
  };
  std::visit(
      [&](auto const& i) {
        using kind = std::remove_cvref_t<decltype(i)>;
        if constexpr (std::is_same_v<kind, glorot_uniform>)
          within(std::sqrt(6 / (of.in + of.out)));
        else if constexpr (std::is_same_v<kind, he_uniform>)
          within(std::sqrt(6 / of.in));
        else if constexpr (std::is_same_v<kind, glorot_normal>)
          around(2 / (of.in + of.out));
        else if constexpr (std::is_same_v<kind, he_normal>)
          around(2 / of.in);
        else if constexpr (std::is_same_v<kind, uniform>)
          detail::fill_uniform(i.low, i.high, random, first, to);
        else if constexpr (std::is_same_v<kind, normal>)
          for (std::size_t e = 0; e < to.size(); ++e) to[e] = T(i.mean + i.stddev * random.normal(first + e));
        else if constexpr (std::is_same_v<kind, truncated_normal>)
          detail::fill_truncated(i.mean, i.stddev, random, first, to);
        else if constexpr (std::is_same_v<kind, constant>)
          for (T& v : to) v = T(i.value);
        else
          detail::fill_passing(dims, random, first, to);
      },
      how);
}

#ifndef EDL_HEADER_ONLY
template void fill(initializer const&, extents const&, random_stream const&, std::size_t, std::span<float>);
template void fill(initializer const&, extents const&, random_stream const&, std::size_t, std::span<double>);
#endif

}  // namespace edl::nn
