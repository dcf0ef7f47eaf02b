// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/tiled_gemm.hpp"
#include "edl/core/inline.hpp"

#ifdef __x86_64__

#include <algorithm>

#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/convolution/tiled_passes.hpp"
#include "edl/compute/device/cpu/tile_unit.hpp"

namespace edl::detail::tiled {

EDL_INLINE bool faster(std::size_t m, std::size_t n, std::size_t k) {
  return has_unit() && std::min({m, n, k}) >= depth;
}

EDL_INLINE bool multiply(basic_cpu<float>& cpu, std::size_t m, std::size_t n, std::size_t k,
                         edl::matrix<float> a, edl::matrix<float> b, float* c, std::size_t c_stride,
                         bool narrow, activation f, view<float> bias) {
  return has_unit() && multiply_with<unit>(cpu, m, n, k, a, b, c, c_stride, narrow, f, bias);
}

}  // namespace edl::detail::tiled

#else

namespace edl::detail::tiled {

EDL_INLINE bool faster(std::size_t, std::size_t, std::size_t) { return false; }
EDL_INLINE bool multiply(basic_cpu<float>&, std::size_t, std::size_t, std::size_t, edl::matrix<float>,
                         edl::matrix<float>, float*, std::size_t, bool, activation, view<float>) {
  return false;
}

}  // namespace edl::detail::tiled

#endif
