// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// y = x ∗ kernel + bias. `bias` may be empty. `scratch` holds `g.scratch(batch)` elements.
template <class T>
void conv2d_forward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, reads<T> x, reads<T> kernel,
                    reads<T> bias, writes<T> y, writes<T> scratch);

/// Gradients of a convolution. An empty `dx` or `dbias` is not computed.
template <class T>
void conv2d_backward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, reads<T> x, reads<T> kernel,
                     reads<T> dy, writes<T> dx, writes<T> dkernel, writes<T> dbias, writes<T> scratch);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/conv2d.ipp"
#endif
