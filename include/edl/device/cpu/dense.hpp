// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/device/activation.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// y (rows × outputs) = f(x (rows × inputs) · kernel (inputs × outputs) + bias). `bias` may be empty.
template <class T>
void dense_forward(basic_cpu<T>& cpu, std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                   reads<T> x, reads<T> kernel, reads<T> bias, writes<T> y);

/// Gradients of a dense layer without its activation. An empty `dx` or `dbias` is not computed.
template <class T>
void dense_backward(basic_cpu<T>& cpu, std::size_t rows, std::size_t inputs, std::size_t outputs, reads<T> x,
                    reads<T> kernel, reads<T> dy, writes<T> dx, writes<T> dkernel, writes<T> dbias);

/// Which product computes a dense layer forward.
template <class T>
std::string describe_dense(basic_cpu<T>& cpu, std::size_t rows, std::size_t inputs, std::size_t outputs);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/dense.ipp"
#endif
