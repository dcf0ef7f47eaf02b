// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/activation.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

template <class T>
void copy(basic_cpu<T>& cpu, reads<T> x, writes<T> y);

/// y = f(a + b), where y may be a or b.
template <class T>
void add(basic_cpu<T>& cpu, activation f, reads<T> a, reads<T> b, writes<T> y);

/// y = a + b where x > 0, and 0 elsewhere; y may be a or b.
template <class T>
void add_masked(basic_cpu<T>& cpu, reads<T> a, reads<T> b, reads<T> x, writes<T> y);

/// y = factor · x; y may be x.
template <class T>
void multiply(basic_cpu<T>& cpu, std::type_identity_t<T> factor, reads<T> x, writes<T> y);

/// Every element of x as a bfloat16 (core/bfloat16.hpp), two bytes each at the start of `to`.
template <class T>
void halve(basic_cpu<T>& cpu, reads<T> x, std::span<std::byte> to);

/// The backward pass.
template <class T>
void restore(basic_cpu<T>& cpu, std::span<std::byte const> from, writes<T> y);

/// Copies a matrix of `rows` × `columns` whose rows begin at elements `x_first` and `y_first`, and stand
/// `x_stride` and `y_stride` apart: the channels of one branch into or out of a concatenation.
template <class T>
void copy_columns(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, reads<T> x, std::size_t x_first,
                  std::size_t x_stride, writes<T> y, std::size_t y_first, std::size_t y_stride);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/elementwise.ipp"
#endif
