// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

/// Convolutions of narrow samples by the processor's matrix unit. The rows of a tile are the same place of 16
/// samples' maps. So the part of a kernel beyond a map's border costs nothing, and strides cost only their
/// products.
namespace edl::detail::tiled {

/// Whether these functions support this geometry on this processor.
bool fits(conv_geometry const& g);

/// Whether the rule chooses it, for a kernel's gradient or for the other passes. The rule follows
/// measurements on one machine.
bool faster(conv_geometry const& g, int batch, bool of_kernel);

/// The passes of conv2d_forward and conv2d_backward, for a geometry that fits. `forward` and `to_input` give
/// the same bits for any number of threads, `to_kernel` for equal ones.
void forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
             view<float> kernel, view<float> bias, std::span<float> y);
void to_input(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> kernel, view<float> dy,
              std::span<float> dx);
/// `dbias` may be empty.
void to_kernel(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x, view<float> dy,
               std::span<float> dkernel, std::span<float> dbias);

}  // namespace edl::detail::tiled

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/convolution/tiled_conv2d.ipp"
#endif
