// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

/// Convolutions of float32 samples by Winograd's algorithm F(4 × 4, 3 × 3), in our own loops, with a quarter
/// of the multiplications. The error is about four times that of plain products. A kernel is transformed only
/// once if the device caches kernels.
namespace edl::detail::winograd_wide {

/// Whether these functions support this geometry on this processor.
bool fits(conv_geometry const& g);

/// Whether the rule chooses it. The rule follows measurements on several machines.
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
