// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"

namespace edl::detail::tiled {

/// c = a · b with factors rounded to bfloat16 by the processor's matrix unit, on all threads of the device.
/// It is computed as a 1 × 1 convolution. False: not computed. `narrow` describes c. If a is not transposed,
/// c = f(a · b + bias); `bias` may be empty.
bool multiply(basic_cpu<float>& cpu, std::size_t m, std::size_t n, std::size_t k, edl::matrix<float> a,
              edl::matrix<float> b, float* c, std::size_t c_stride, bool narrow,
              activation f = activation::none, view<float> bias = {});

/// Whether the rule chooses it.
bool faster(std::size_t m, std::size_t n, std::size_t k);

}  // namespace edl::detail::tiled

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/tiled_gemm.ipp"
#endif
