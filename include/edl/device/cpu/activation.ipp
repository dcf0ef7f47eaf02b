// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>

#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/exponential.hpp"
#include "edl/device/cpu/gelu.hpp"

namespace edl {
namespace detail {

/// to[i] = f(i) for all elements, on all threads.
template <class T, class F>
void each_element(basic_cpu<T>& cpu, std::span<T> y, F&& f) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    T* const to = y.data();
    // What is read may be what is written, at the same index.
    // NOLINTNEXTLINE(clang-diagnostic-unknown-pragmas)
#pragma GCC ivdep
    for (std::size_t i = begin; i < end; ++i) to[i] = f(i);
  });
}

template <class T>
using element_array = Eigen::Array<T, Eigen::Dynamic, 1>;
template <class T>
using element_view = Eigen::Map<element_array<T> const>;

/// work(first element, count) for all elements, on all threads.
template <class T, class Work>
void each_share(basic_cpu<T>& cpu, std::span<T> y, Work&& work) {
  cpu.share(y.size(), cpu.parts(y.size(), 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    work(begin, Eigen::Index(end - begin),
         Eigen::Map<element_array<T>>(y.data() + begin, Eigen::Index(end - begin)));
  });
}

template <class T>
void relu_forward(basic_cpu<T>& cpu, view<T> x, std::span<T> y) {
  each_element<T>(cpu, y, [from = x.data()](std::size_t i) { return from[i] < T(0) ? T(0) : from[i]; });
}

template <class T>
void relu_backward(basic_cpu<T>& cpu, view<T> y, view<T> dy, std::span<T> dx) {
  // Both are read before the choice: a load that depends on it would be a jump, at random, and no vector.
  each_element<T>(cpu, dx, [out = y.data(), from = dy.data()](std::size_t i) {
    T const slope = from[i];
    return out[i] > T(0) ? slope : T(0);
  });
}

template <class T>
void leaky_relu_forward(basic_cpu<T>& cpu, T slope, view<T> x, std::span<T> y) {
  each_element<T>(
      cpu, y, [slope, from = x.data()](std::size_t i) { return from[i] * (from[i] > T(0) ? T(1) : slope); });
}

template <class T>
void leaky_relu_backward(basic_cpu<T>& cpu, T slope, view<T> y, view<T> dy, std::span<T> dx) {
  each_element<T>(cpu, dx, [slope, out = y.data(), from = dy.data()](std::size_t i) {
    return from[i] * (out[i] > T(0) ? T(1) : slope);
  });
}

/// y = factor · x; y may be x.
template <class T>
void scale(basic_cpu<T>& cpu, T factor, view<T> x, std::span<T> y) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) y[i] = factor * x[i];
  });
}

template <class T>
void sigmoid_forward(basic_cpu<T>& cpu, view<T> x, std::span<T> y) {
  each_share<T>(cpu, y, [&](std::size_t at, Eigen::Index n, auto to) {
    to = T(0.5) * (element_view<T>(x.data() + at, n) * T(0.5)).tanh() + T(0.5);
  });
}

template <class T>
void sigmoid_backward(basic_cpu<T>& cpu, view<T> y, view<T> dy, std::span<T> dx) {
  each_element<T>(cpu, dx, [out = y.data(), from = dy.data()](std::size_t i) {
    return from[i] * out[i] * (T(1) - out[i]);
  });
}

template <class T>
void tanh_forward(basic_cpu<T>& cpu, view<T> x, std::span<T> y) {
  each_share<T>(cpu, y, [&](std::size_t at, Eigen::Index n, auto to) {
    to = element_view<T>(x.data() + at, n).tanh();
  });
}

template <class T>
void tanh_backward(basic_cpu<T>& cpu, view<T> y, view<T> dy, std::span<T> dx) {
  each_element<T>(cpu, dx, [out = y.data(), from = dy.data()](std::size_t i) {
    return from[i] * (T(1) - out[i] * out[i]);
  });
}

/// y = f(x), by vectors.
template <class T, class F>
void vectors_forward(basic_cpu<T>& cpu, view<T> x, std::span<T> y, F const& f) {
  cpu.share(y.size(), cpu.parts(y.size(), 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    by_vectors<T>(end - begin, x.data() + begin, y.data() + begin, f);
  });
}

/// dx = dy · f(x), by vectors; dx may be dy.
template <class T, class F>
void vectors_backward(basic_cpu<T>& cpu, view<T> x, view<T> dy, std::span<T> dx, F const& f) {
  constexpr std::size_t most = 512;
  cpu.share(dx.size(), cpu.parts(dx.size(), 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    std::array<T, most> slopes;
    for (; begin < end; begin += most) {
      std::size_t const n = std::min(most, end - begin);
      by_vectors<T>(n, x.data() + begin, slopes.data(), f);
      T const* const from = dy.data() + begin;
      T* const to = dx.data() + begin;
      // NOLINTNEXTLINE(clang-diagnostic-unknown-pragmas)
#pragma GCC ivdep
      for (std::size_t i = 0; i < n; ++i) to[i] = from[i] * slopes[i];
    }
  });
}

}  // namespace detail

template <class T>
void basic_cpu<T>::elementwise_forward(elementwise f, T parameter, view<T> x, std::span<T> y) {
  switch (f) {
    case elementwise::relu:
      return detail::relu_forward(*this, x, y);
    case elementwise::leaky_relu:
      return detail::leaky_relu_forward(*this, parameter, x, y);
    case elementwise::sigmoid:
      return detail::sigmoid_forward(*this, x, y);
    case elementwise::tanh:
      return detail::tanh_forward(*this, x, y);
    case elementwise::gelu:
      return detail::vectors_forward<T>(*this, x, y, [](auto const& v) { return detail::gelu(v); });
    case elementwise::scale:
      return detail::scale(*this, parameter, x, y);
    case elementwise::silu:
      return detail::vectors_forward<T>(*this, x, y, [](auto const& v) { return detail::silu(v); });
    case elementwise::elu:
      return detail::vectors_forward<T>(*this, x, y,
                                        [=](auto const& v) { return detail::elu(v, parameter); });
    case elementwise::softplus:
      return detail::vectors_forward<T>(*this, x, y, [](auto const& v) { return detail::softplus(v); });
  }
}

template <class T>
void basic_cpu<T>::elementwise_backward(elementwise f, T parameter, view<T> y, view<T> dy, std::span<T> dx) {
  switch (f) {
    case elementwise::relu:
      return detail::relu_backward(*this, y, dy, dx);
    case elementwise::leaky_relu:
      return detail::leaky_relu_backward(*this, parameter, y, dy, dx);
    case elementwise::sigmoid:
      return detail::sigmoid_backward(*this, y, dy, dx);
    case elementwise::tanh:
      return detail::tanh_backward(*this, y, dy, dx);
    case elementwise::gelu:
      return detail::vectors_backward<T>(*this, y, dy, dx,
                                         [](auto const& v) { return detail::gelu_slope(v); });
    case elementwise::scale:
      return detail::scale(*this, parameter, dy, dx);
    case elementwise::silu:
      return detail::vectors_backward<T>(*this, y, dy, dx,
                                         [](auto const& v) { return detail::silu_slope(v); });
    case elementwise::elu:
      return detail::vectors_backward<T>(*this, y, dy, dx,
                                         [=](auto const& v) { return detail::elu_slope(v, parameter); });
    case elementwise::softplus:
      return detail::vectors_backward<T>(*this, y, dy, dx,
                                         [](auto const& v) { return detail::sigmoid_at(v).above; });
  }
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::elementwise_forward(elementwise, float, view<float>, std::span<float>);
template void basic_cpu<double>::elementwise_forward(elementwise, double, view<double>, std::span<double>);
template void basic_cpu<float>::elementwise_backward(elementwise, float, view<float>, view<float>,
                                                     std::span<float>);
template void basic_cpu<double>::elementwise_backward(elementwise, double, view<double>, view<double>,
                                                      std::span<double>);
#endif

}  // namespace edl
