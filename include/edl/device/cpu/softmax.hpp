// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// y = exp(x) / Σ exp(x) along each row, without overflow.
template <class T>
void softmax_forward(basic_cpu<T>& cpu, std::size_t rows, std::size_t classes, reads<T> x, writes<T> y);

template <class T>
void softmax_backward(basic_cpu<T>& cpu, std::size_t rows, std::size_t classes, reads<T> y, reads<T> dy,
                      writes<T> dx);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/softmax.ipp"
#endif
