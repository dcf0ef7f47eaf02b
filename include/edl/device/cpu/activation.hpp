// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// y = max(x, 0); a NaN stays. Backward functions of activations take the output, not the input.
template <class T>
void relu_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y);
template <class T>
void relu_backward(basic_cpu<T>& cpu, reads<T> y, reads<T> dy, writes<T> dx);

/// y = x where x > 0, slope · x elsewhere, with slope ≥ 0.
template <class T>
void leaky_relu_forward(basic_cpu<T>& cpu, std::type_identity_t<T> slope, reads<T> x, writes<T> y);
template <class T>
void leaky_relu_backward(basic_cpu<T>& cpu, std::type_identity_t<T> slope, reads<T> y, reads<T> dy,
                         writes<T> dx);

/// y = 1 / (1 + exp(-x))
template <class T>
void sigmoid_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y);
template <class T>
void sigmoid_backward(basic_cpu<T>& cpu, reads<T> y, reads<T> dy, writes<T> dx);

template <class T>
void tanh_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y);
template <class T>
void tanh_backward(basic_cpu<T>& cpu, reads<T> y, reads<T> dy, writes<T> dx);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/activation.ipp"
#endif
