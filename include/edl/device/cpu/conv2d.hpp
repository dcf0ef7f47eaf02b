// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/device/activation.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// y = f(x ∗ kernel + bias). `bias` may be empty.
template <class T>
void conv2d_forward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, activation f, reads<T> x,
                    reads<T> kernel, reads<T> bias, writes<T> y);

/// Gradients of a convolution without its activation. An empty `dx` or `dbias` is not computed.
template <class T>
void conv2d_backward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, reads<T> x, reads<T> kernel,
                     reads<T> dy, writes<T> dx, writes<T> dkernel, writes<T> dbias);

/// Which kernels compute a convolution forward, and backward to the input and to the kernel.
template <class T>
std::string describe_conv2d(basic_cpu<T>& cpu, conv_geometry const& g, int batch);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/conv2d.ipp"
#endif
