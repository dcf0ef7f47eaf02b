// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"

namespace edl::detail {

/// How a pass of a convolution is computed. It is by our own loops, by oneDNN directly, or by oneDNN with
/// Winograd's algorithm and the batch or the channels cut into pieces. That algorithm has tiles of 4 x 4, and
/// a quarter of the multiplications of 3 x 3 (Lavin and Gray, 2015). Narrow samples have one of our own, with
/// tiles of 2 x 2 (winograd.hpp), and the matrix unit of a processor that has one (tiled_conv2d.hpp).
/// And samples in float32 have one with tiles of 4 x 4 (winograd_wide.hpp).
enum class conv_way { own, direct, winograd, winograd_by_channels, winograd_narrow, winograd_wide, tiled };
constexpr std::array<std::string_view, 7> conv_ways{
    "own", "direct", "winograd", "winograd-by-channels", "winograd-narrow", "winograd-wide", "tiled"};

/// The way by rule, from what was fastest on the machines tried.
conv_way onednn_conv2d_rule(conv_geometry const& g, int batch, int threads);

/// The convolutions of conv2d.hpp by oneDNN. Samples are channels last (or, within a call, as Winograd's
/// algorithm wants them). Kernels are laid out as it likes them, and each piece of the work has one thread.
/// False: nothing is done, oneDNN has no such kernel for this shape or this processor.
bool onednn_conv2d_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f,
                           view<float> x, view<float> kernel, view<float> bias, std::span<float> y,
                           conv_way way);

/// Without `dkernel` the input's gradient alone, without `dx` the others alone.
bool onednn_conv2d_backward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x,
                            view<float> kernel, view<float> dy, std::span<float> dx, std::span<float> dkernel,
                            std::span<float> dbias, conv_way weights, conv_way data);

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/onednn/onednn_conv2d.ipp"
#endif
