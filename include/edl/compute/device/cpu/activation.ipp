// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/exponential.hpp"
#include "edl/compute/device/cpu/gelu.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"

namespace edl {
namespace detail {

/// y = f(elements of `from` …), elementwise, on all threads.
template <class T, class F, class... From>
void each_element(basic_cpu<T>& cpu, std::size_t n, F const& f, samples_at<T> y, From... from) {
  by_parts<T>(
      cpu, n, 16 * 1024,
      [f](std::size_t some, T* to, auto const*... x) {
  // The output may alias the inputs, at the same index. All inputs are loaded before `f` chooses: a load that
  // depends on a choice would be an unpredictable branch, and prevent vectorisation.
  // NOLINTNEXTLINE(clang-diagnostic-unknown-pragmas)
#pragma GCC ivdep
        for (std::size_t i = 0; i < some; ++i) to[i] = f(T(x[i])...);
      },
      y, from...);
}

/// y = f(x) with f of a whole array.
template <class T, class F>
void each_array(basic_cpu<T>& cpu, std::size_t n, F const& f, samples_at<T> y, samples_at<T> x) {
  using elements = Eigen::Array<T, Eigen::Dynamic, 1>;
  by_parts<T>(
      cpu, n, 4 * 1024,
      [f](std::size_t some, T* to, T const* from) {
        Eigen::Map<elements>(to, Eigen::Index(some)) =
            f(Eigen::Map<elements const>(from, Eigen::Index(some)));
      },
      y, x);
}

/// y = f(x), with vectors.
template <class T, class F>
void each_vector(basic_cpu<T>& cpu, std::size_t n, F const& f, samples_at<T> y, samples_at<T> x) {
  by_parts<T>(
      cpu, n, 4 * 1024, [f](std::size_t some, T* to, T const* from) { by_vectors<T>(some, from, to, f); }, y,
      x);
}

/// dx = dy · f(x), with vectors; dx may be dy.
template <class T, class F>
void each_slope(basic_cpu<T>& cpu, std::size_t n, F const& f, samples_at<T> dx, samples_at<T> x,
                samples_at<T> dy) {
  by_parts<T>(
      cpu, n, 4 * 1024,
      [f](std::size_t all, T* into, T const* at, T const* slope) {
        constexpr std::size_t most = 512;
        std::array<T, most> slopes;
        for (std::size_t begin = 0; begin < all; begin += most) {
          std::size_t const some = std::min(most, all - begin);
          by_vectors<T>(some, at + begin, slopes.data(), f);
          T const* const from = slope + begin;
          T* const to = into + begin;
      // NOLINTNEXTLINE(clang-diagnostic-unknown-pragmas)
#pragma GCC ivdep
          for (std::size_t i = 0; i < some; ++i) to[i] = from[i] * slopes[i];
        }
      },
      dx, x, dy);
}

}  // namespace detail

template <class T>
void basic_cpu<T>::elementwise_forward(elementwise f, T parameter, view<T> x, std::span<T> y,
                                       bfloat16_io narrow) {
  detail::samples_at<T> const from{x.data(), narrow.in}, to{y.data(), narrow.out};
  std::size_t const n = elements_of(y.size(), narrow.out);
  switch (f) {
    case elementwise::relu:
      return detail::each_element<T>(*this, n, [](T v) { return v < T(0) ? T(0) : v; }, to, from);
    case elementwise::leaky_relu:
      return detail::each_element<T>(
          *this, n, [parameter](T v) { return v * (v > T(0) ? T(1) : parameter); }, to, from);
    case elementwise::sigmoid:
      return detail::each_array<T>(
          *this, n, [](auto const& v) { return (v * T(0.5)).tanh() * T(0.5) + T(0.5); }, to, from);
    case elementwise::tanh:
      return detail::each_array<T>(*this, n, [](auto const& v) { return v.tanh(); }, to, from);
    case elementwise::gelu:
      return detail::each_vector<T>(*this, n, [](auto const& v) { return detail::gelu(v); }, to, from);
    case elementwise::scale:
      return detail::each_element<T>(*this, n, [parameter](T v) { return parameter * v; }, to, from);
    case elementwise::silu:
      return detail::each_vector<T>(*this, n, [](auto const& v) { return detail::silu(v); }, to, from);
    case elementwise::elu:
      return detail::each_vector<T>(
          *this, n, [=](auto const& v) { return detail::elu(v, parameter); }, to, from);
    case elementwise::softplus:
      return detail::each_vector<T>(*this, n, [](auto const& v) { return detail::softplus(v); }, to, from);
  }
}

template <class T>
void basic_cpu<T>::elementwise_backward(elementwise f, T parameter, view<T> y, view<T> dy, std::span<T> dx,
                                        bfloat16_io narrow) {
  detail::samples_at<T> const at{y.data(), slope_of_x(f) ? narrow.in : narrow.out},
      from{dy.data(), narrow.out}, to{dx.data(), narrow.in};
  std::size_t const n = elements_of(dx.size(), narrow.in);
  switch (f) {
    case elementwise::relu:
      return detail::each_element<T>(
          *this, n, [](T v, T slope) { return v > T(0) ? slope : T(0); }, to, at, from);
    case elementwise::leaky_relu:
      return detail::each_element<T>(
          *this, n, [parameter](T v, T slope) { return slope * (v > T(0) ? T(1) : parameter); }, to, at,
          from);
    case elementwise::sigmoid:
      return detail::each_element<T>(
          *this, n, [](T v, T slope) { return slope * v * (T(1) - v); }, to, at, from);
    case elementwise::tanh:
      return detail::each_element<T>(
          *this, n, [](T v, T slope) { return slope * (T(1) - v * v); }, to, at, from);
    case elementwise::gelu:
      return detail::each_slope<T>(
          *this, n, [](auto const& v) { return detail::gelu_slope(v); }, to, at, from);
    case elementwise::scale:
      return detail::each_element<T>(*this, n, [parameter](T slope) { return parameter * slope; }, to, from);
    case elementwise::silu:
      return detail::each_slope<T>(
          *this, n, [](auto const& v) { return detail::silu_slope(v); }, to, at, from);
    case elementwise::elu:
      return detail::each_slope<T>(
          *this, n, [=](auto const& v) { return detail::elu_slope(v, parameter); }, to, at, from);
    case elementwise::softplus:
      return detail::each_slope<T>(
          *this, n, [](auto const& v) { return detail::sigmoid_at(v).above; }, to, at, from);
  }
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::elementwise_forward(elementwise, float, view<float>, std::span<float>,
                                                    bfloat16_io);
template void basic_cpu<double>::elementwise_forward(elementwise, double, view<double>, std::span<double>,
                                                     bfloat16_io);
template void basic_cpu<float>::elementwise_backward(elementwise, float, view<float>, view<float>,
                                                     std::span<float>, bfloat16_io);
template void basic_cpu<double>::elementwise_backward(elementwise, double, view<double>, view<double>,
                                                      std::span<double>, bfloat16_io);
#endif

}  // namespace edl
