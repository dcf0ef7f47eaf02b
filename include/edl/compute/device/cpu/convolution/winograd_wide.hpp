// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

/// Convolutions of float32 samples by Winograd's algorithm F(4 x 4, 3 x 3), by our own loops. It has a
/// quarter of the multiplications, and errs by some four times as much as plain products. A kernel is
/// transformed once, where the device keeps kernels.
namespace edl::detail::winograd_wide {

/// Whether these functions compute it, on this processor.
bool fits(conv_geometry const& g);

/// Whether it is the way by rule. It is from what was fastest on the machines tried.
bool faster(conv_geometry const& g, int batch);

/// The passes of conv2d_forward and conv2d_backward, for a geometry that fits. They give the same bits for
/// any number of threads, and each sample the same in any batch.
void forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
             view<float> kernel, view<float> bias, std::span<float> y);
void to_input(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> kernel, view<float> dy,
              std::span<float> dx);

}  // namespace edl::detail::winograd_wide

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/convolution/winograd_wide.ipp"
#endif
