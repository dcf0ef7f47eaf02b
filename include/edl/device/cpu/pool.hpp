// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// The greatest element under each window; what lies outside the sample does not count. A NaN stays.
template <class T>
void max_pool_forward(basic_cpu<T>& cpu, pool_geometry const& g, int batch, reads<T> x, writes<T> y);

/// The gradient goes to the first of equal greatest elements.
template <class T>
void max_pool_backward(basic_cpu<T>& cpu, pool_geometry const& g, int batch, reads<T> x, reads<T> y,
                       reads<T> dy, writes<T> dx);

/// The mean of the elements under each window that lie inside the sample (TensorFlow's rule at the border).
template <class T>
void average_pool_forward(basic_cpu<T>& cpu, pool_geometry const& g, int batch, reads<T> x, writes<T> y);

template <class T>
void average_pool_backward(basic_cpu<T>& cpu, pool_geometry const& g, int batch, reads<T> dy, writes<T> dx);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/pool.ipp"
#endif
