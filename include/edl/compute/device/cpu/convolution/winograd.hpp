// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

/// Convolutions of narrow samples by Winograd's algorithm F(2 × 2, 3 × 3), in our own loops, with four ninths
/// of the multiplications. Samples and kernels are transformed in float32, rounded to bfloat16, multiplied
/// and summed in float32. The error is about one and a half times that of plain products.
namespace edl::detail::winograd {

/// Whether these functions support this geometry on this processor.
bool fits(conv_geometry const& g);

/// Whether the rule chooses it, for a kernel's gradient or for the other passes. The rule follows
/// measurements on several machines.
bool faster(conv_geometry const& g, bool of_kernel);

/// The passes of conv2d_forward and conv2d_backward, for a geometry that fits. `forward` and `to_input` give
/// the same bits for any number of threads, `to_kernel` for equal ones.
void forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
             view<float> kernel, view<float> bias, std::span<float> y);
void to_input(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> kernel, view<float> dy,
              std::span<float> dx);
/// `dbias` may be empty.
void to_kernel(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x, view<float> dy,
               std::span<float> dkernel, std::span<float> dbias);

}  // namespace edl::detail::winograd

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/convolution/winograd.ipp"
#endif
