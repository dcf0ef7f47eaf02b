// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/device/cpu/options.hpp"

#ifdef EDL_ONEDNN
#include <dnnl.hpp>
#endif

namespace edl {

#ifdef EDL_ONEDNN
EDL_INLINE bool multiplies_bfloat16() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
}
#else
EDL_INLINE bool multiplies_bfloat16() { return false; }
#endif

EDL_INLINE cpu_options const& supported(cpu_options const& o) {
  if (o.precision == precision::tf32)
    throw error("--precision=tf32 is of GPUs: this is a processor, which knows float32 and bfloat16");
  if (o.precision == precision::bfloat16 && o.kernels != kernels::own && !multiplies_bfloat16())
    throw error(
#ifdef EDL_ONEDNN
        "--precision=bfloat16: this processor has no products of bfloat16 (avx512_bf16 or amx_bf16 in "
        "/proc/cpuinfo)"
#else
        "--precision=bfloat16: this build was made without oneDNN"
#endif
        "; use float32, or --kernels=own, which rounds as much and is slower than float32");
  return o;
}

}  // namespace edl
