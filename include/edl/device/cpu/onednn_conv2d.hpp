// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/device/activation.hpp"
#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/onednn.hpp"

namespace edl::detail {

/// The convolutions of conv2d.hpp by oneDNN: samples channels last (or, within a call, as Winograd's
/// algorithm wants them), kernels laid out as it likes them, one share of the batch per thread. False: not
/// done, the caller does it.
bool onednn_conv2d_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f,
                           view<float> x, view<float> kernel, view<float> bias, std::span<float> y);
bool onednn_conv2d_backward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x,
                            view<float> kernel, view<float> dy, std::span<float> dx, std::span<float> dkernel,
                            std::span<float> dbias);

/// Which of oneDNN's kernels compute a convolution; empty where it does not.
std::string onednn_describe_conv2d(basic_cpu<float>& cpu, conv_geometry const& g, int batch);

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/onednn_conv2d.ipp"
#endif
