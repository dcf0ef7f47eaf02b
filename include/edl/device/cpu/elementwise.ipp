// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "edl/core/bfloat16.hpp"
#include "edl/device/cpu/elementwise.hpp"
#include "edl/device/cpu/lanes.hpp"

namespace edl {

template <class T>
void copy(basic_cpu<T>& cpu, reads<T> x, writes<T> y) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    std::copy_n(x.data() + begin, end - begin, y.data() + begin);
  });
}

template <class T>
void add(basic_cpu<T>& cpu, activation f, reads<T> a, reads<T> b, writes<T> y) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    T const floor = f == activation::relu ? T(0) : -std::numeric_limits<T>::infinity();
    T const *const p = a.data() + begin, *const q = b.data() + begin;
    T* const to = y.data() + begin;
    detail::by_lanes<T>(end - begin, [&]<class V>(std::size_t i) {
      V const z = detail::load<V>(p + i) + detail::load<V>(q + i);
      detail::store<V>(to + i, z < floor ? V{} + floor : z);
    });
  });
}

template <class T>
void add_masked(basic_cpu<T>& cpu, reads<T> a, reads<T> b, reads<T> x, writes<T> y) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    T const *const p = a.data() + begin, *const q = b.data() + begin, *const r = x.data() + begin;
    T* const to = y.data() + begin;
    detail::by_lanes<T>(end - begin, [&]<class V>(std::size_t i) {
      V const z = detail::load<V>(p + i) + detail::load<V>(q + i);
      detail::store<V>(to + i, detail::load<V>(r + i) > T(0) ? z : V{});
    });
  });
}

template <class T>
void multiply(basic_cpu<T>& cpu, std::type_identity_t<T> factor, reads<T> x, writes<T> y) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) y[i] = factor * x[i];
  });
}

template <class T>
void halve(basic_cpu<T>& cpu, reads<T> x, std::span<std::byte> to) {
  T const* const from = x.data();
  auto* __restrict const into = reinterpret_cast<std::uint16_t*>(to.data());
  cpu.share(x.size(), cpu.parts(x.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) into[i] = to_bfloat16(float(from[i]));
  });
}

template <class T>
void restore(basic_cpu<T>& cpu, std::span<std::byte const> from, writes<T> y) {
  auto const* const x = reinterpret_cast<std::uint16_t const*>(from.data());
  T* __restrict const into = y.data();
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) into[i] = T(from_bfloat16(x[i]));
  });
}

template <class T>
void copy_columns(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, reads<T> x, std::size_t x_first,
                  std::size_t x_stride, writes<T> y, std::size_t y_first, std::size_t y_stride) {
  cpu.share(rows, cpu.parts(rows * columns, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i)
      std::copy_n(x.data() + x_first + i * x_stride, columns, y.data() + y_first + i * y_stride);
  });
}

#ifndef EDL_HEADER_ONLY
template void add_masked(basic_cpu<float>&, view<float>, view<float>, view<float>, std::span<float>);
template void add_masked(basic_cpu<double>&, view<double>, view<double>, view<double>, std::span<double>);
template void multiply(basic_cpu<float>&, float, view<float>, std::span<float>);
template void multiply(basic_cpu<double>&, double, view<double>, std::span<double>);
template void copy(basic_cpu<float>&, view<float>, std::span<float>);
template void copy(basic_cpu<double>&, view<double>, std::span<double>);
template void add(basic_cpu<float>&, activation, view<float>, view<float>, std::span<float>);
template void add(basic_cpu<double>&, activation, view<double>, view<double>, std::span<double>);
template void halve(basic_cpu<float>&, view<float>, std::span<std::byte>);
template void restore(basic_cpu<float>&, std::span<std::byte const>, std::span<float>);
template void copy_columns(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::size_t, std::size_t,
                           std::span<float>, std::size_t, std::size_t);
template void halve(basic_cpu<double>&, view<double>, std::span<std::byte>);
template void restore(basic_cpu<double>&, std::span<std::byte const>, std::span<double>);
template void copy_columns(basic_cpu<double>&, std::size_t, std::size_t, view<double>, std::size_t,
                           std::size_t, std::span<double>, std::size_t, std::size_t);
#endif

}  // namespace edl
