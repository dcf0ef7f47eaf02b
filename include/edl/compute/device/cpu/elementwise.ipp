// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/bfloat16_vectors.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"
#include "edl/core/bfloat16.hpp"

namespace edl {
namespace detail {

/// y = max(a + b, `least`), and 0 where `mask` is not null and not above 0. All operands are narrow. False:
/// not computed, because the processor lacks the instructions.
template <class T>
bool add_narrow([[maybe_unused]] basic_cpu<T>& cpu, [[maybe_unused]] std::size_t n,
                [[maybe_unused]] T const* a, [[maybe_unused]] T const* b, [[maybe_unused]] T const* mask,
                [[maybe_unused]] T least, [[maybe_unused]] T* y) {
#ifdef __x86_64__
  if constexpr (std::same_as<T, float>)
    if (constexpr std::size_t unit = 32; n % unit == 0 && has_bfloat16_instructions()) {
      auto const at = [](auto* x, std::size_t block) { return x ? x + block * unit / 2 : nullptr; };
      cpu.share(n / unit, cpu.parts(n, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
        using half = std::uint16_t;
        add_blocks(end - begin, reinterpret_cast<half const*>(at(a, begin)),
                   reinterpret_cast<half const*>(at(b, begin)),
                   reinterpret_cast<half const*>(at(mask, begin)), least,
                   reinterpret_cast<half*>(at(y, begin)));
      });
      return true;
    }
#endif
  return false;
}

}  // namespace detail

template <class T>
void basic_cpu<T>::copy(view<T> x, std::span<T> y, bfloat16_io narrow) {
  if (narrow.in == narrow.out) narrow = {};  // as it lies
  detail::by_parts<T>(
      *this, elements_of(y.size(), narrow.out), 16 * 1024,
      [](std::size_t n, T* to, T const* from) { std::copy_n(from, n, to); },
      detail::samples_at<T>{y.data(), narrow.out}, detail::samples_at<T>{x.data(), narrow.in});
}

template <class T>
void basic_cpu<T>::add(activation f, view<T> a, view<T> b, std::span<T> y, bfloat16_io narrow) {
  T const floor = f == activation::relu ? T(0) : -std::numeric_limits<T>::infinity();
  if (narrow.in && narrow.out &&
      detail::add_narrow<T>(*this, 2 * y.size(), a.data(), b.data(), nullptr, floor, y.data()))
    return;
  detail::by_parts<T>(
      *this, elements_of(y.size(), narrow.out), 16 * 1024,
      [floor](std::size_t n, T* to, T const* p, T const* q) {
        detail::by_lanes<T>(n, [&]<class V>(std::size_t i) {
          V const z = detail::load<V>(p + i) + detail::load<V>(q + i);
          detail::store<V>(to + i, z < floor ? V{} + floor : z);
        });
      },
      detail::samples_at<T>{y.data(), narrow.out}, detail::samples_at<T>{a.data(), narrow.out},
      detail::samples_at<T>{b.data(), narrow.in});
}

template <class T>
void basic_cpu<T>::multiply_elements(view<T> a, view<T> b, std::span<T> y) {
  detail::by_parts<T>(
      *this, y.size(), 16 * 1024,
      [](std::size_t n, T* to, T const* p, T const* q) {
        detail::by_lanes<T>(n, [&]<class V>(std::size_t i) {
          detail::store<V>(to + i, detail::load<V>(p + i) * detail::load<V>(q + i));
        });
      },
      detail::samples_at<T>{y.data(), false}, detail::samples_at<T>{a.data(), false},
      detail::samples_at<T>{b.data(), false});
}

template <class T>
void basic_cpu<T>::add_masked(view<T> a, view<T> b, view<T> x, std::span<T> y, bfloat16_io narrow) {
  if (narrow.in && narrow.out &&
      detail::add_narrow<T>(*this, 2 * y.size(), a.data(), b.data(), x.data(),
                            -std::numeric_limits<T>::infinity(), y.data()))
    return;
  detail::by_parts<T>(
      *this, elements_of(y.size(), narrow.out), 16 * 1024,
      [](std::size_t n, T* to, T const* p, T const* q, T const* r) {
        detail::by_lanes<T>(n, [&]<class V>(std::size_t i) {
          V const z = detail::load<V>(p + i) + detail::load<V>(q + i);
          detail::store<V>(to + i, detail::load<V>(r + i) > T(0) ? z : V{});
        });
      },
      detail::samples_at<T>{y.data(), narrow.out}, detail::samples_at<T>{a.data(), narrow.out},
      detail::samples_at<T>{b.data(), narrow.in}, detail::samples_at<T>{x.data(), narrow.out});
}

template <class T>
void basic_cpu<T>::store_bfloat16(view<T> x, std::span<std::byte> to) {
  T const* const from = x.data();
  auto* __restrict const into = reinterpret_cast<std::uint16_t*>(to.data());
  this->share(x.size(), this->parts(x.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    if constexpr (std::same_as<T, float>)
      detail::round_here(end - begin, from + begin, into + begin);
    else
      for (std::size_t i = begin; i < end; ++i) into[i] = to_bfloat16(float(from[i]));
  });
}

template <class T>
void basic_cpu<T>::load_bfloat16(std::span<std::byte const> from, std::span<T> y) {
  auto const* const x = reinterpret_cast<std::uint16_t const*>(from.data());
  T* __restrict const into = y.data();
  this->share(y.size(), this->parts(y.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    if constexpr (std::same_as<T, float>)
      detail::widen_here(end - begin, x + begin, into + begin);
    else
      for (std::size_t i = begin; i < end; ++i) into[i] = T(from_bfloat16(x[i]));
  });
}

template <class T>
void basic_cpu<T>::copy_columns(std::size_t rows, std::size_t columns, view<T> x, std::size_t x_first,
                                std::size_t x_stride, std::span<T> y, std::size_t y_first,
                                std::size_t y_stride) {
  this->share(rows, this->parts(rows * columns, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i)
      std::copy_n(x.data() + x_first + i * x_stride, columns, y.data() + y_first + i * y_stride);
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::multiply_elements(view<float>, view<float>, std::span<float>);
template void basic_cpu<double>::multiply_elements(view<double>, view<double>, std::span<double>);
template void basic_cpu<float>::add_masked(view<float>, view<float>, view<float>, std::span<float>,
                                           bfloat16_io);
template void basic_cpu<double>::add_masked(view<double>, view<double>, view<double>, std::span<double>,
                                            bfloat16_io);
template void basic_cpu<float>::copy(view<float>, std::span<float>, bfloat16_io);
template void basic_cpu<double>::copy(view<double>, std::span<double>, bfloat16_io);
template void basic_cpu<float>::add(activation, view<float>, view<float>, std::span<float>, bfloat16_io);
template void basic_cpu<double>::add(activation, view<double>, view<double>, std::span<double>, bfloat16_io);
template void basic_cpu<float>::store_bfloat16(view<float>, std::span<std::byte>);
template void basic_cpu<float>::load_bfloat16(std::span<std::byte const>, std::span<float>);
template void basic_cpu<float>::copy_columns(std::size_t, std::size_t, view<float>, std::size_t, std::size_t,
                                             std::span<float>, std::size_t, std::size_t);
template void basic_cpu<double>::store_bfloat16(view<double>, std::span<std::byte>);
template void basic_cpu<double>::load_bfloat16(std::span<std::byte const>, std::span<double>);
template void basic_cpu<double>::copy_columns(std::size_t, std::size_t, view<double>, std::size_t,
                                              std::size_t, std::span<double>, std::size_t, std::size_t);
#endif

}  // namespace edl
