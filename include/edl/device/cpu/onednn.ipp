// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/device/cpu/onednn.hpp"

#ifdef EDL_ONEDNN
#include <dnnl.hpp>
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}
#endif
#endif

namespace edl::detail {

#if defined(EDL_ONEDNN) && DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
EDL_INLINE onednn_alone::onednn_alone() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
EDL_INLINE onednn_alone::~onednn_alone() {
  if (before_ != 1) omp_set_num_threads(before_);
}
#else
EDL_INLINE onednn_alone::onednn_alone() = default;
EDL_INLINE onednn_alone::~onednn_alone() = default;
#endif

#ifdef EDL_ONEDNN
EDL_INLINE bool has_onednn() { return true; }

EDL_INLINE bool onednn_multiply(std::size_t m, std::size_t n, std::size_t k, matrix<float> a, matrix<float> b,
                                float* c, std::size_t c_stride, bool add) {
  onednn_alone const here;
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', dnnl_dim_t(m), dnnl_dim_t(n),
                    dnnl_dim_t(k), 1, a.data, dnnl_dim_t(a.stride), b.data, dnnl_dim_t(b.stride), add, c,
                    dnnl_dim_t(c_stride)) == dnnl_success;
}

#else
EDL_INLINE bool has_onednn() { return false; }
EDL_INLINE bool onednn_multiply(std::size_t, std::size_t, std::size_t, matrix<float>, matrix<float>, float*,
                                std::size_t, bool) {
  return false;
}
#endif

}  // namespace edl::detail
