// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#include "edl/compute/device/cpu/int8_units.hpp"
#include "edl/compute/device/cpu/options.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"

#ifdef EDL_ONEDNN
#include <dnnl.hpp>
#endif

namespace edl {

EDL_INLINE void check_processor() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    throw error("this program needs a processor with AVX2 and FMA (x86-64-v3)");
#elif defined(__aarch64__)
  if ((::getauxval(AT_HWCAP) & HWCAP_CRC32) == 0)
    throw error("this program needs a processor with CRC32 instructions (crc32 in /proc/cpuinfo)");
#endif
}

EDL_INLINE bool multiplies(precision factors) {
  if (factors == precision::int8) return detail::has_int8_unit();
#ifdef EDL_ONEDNN
  constexpr auto needed = unsigned(dnnl::cpu_isa::avx512_core_bf16);
  if (factors == precision::bfloat16) return (unsigned(dnnl::get_effective_cpu_isa()) & needed) == needed;
#endif
  return factors == precision::float32;
}

EDL_INLINE cpu_options const& supported(cpu_options const& o) {
  if (o.precision == precision::tf32)
    throw error("--precision=tf32 works on GPUs only: a processor computes in float32, bfloat16 or int8");
  if (o.kernels != kernels::own && !multiplies(o.precision))
    throw error(fmt::format(
        "--precision={}: {}; leave it out, or add --kernels=own, which rounds as much and is slower than "
        "float32",
        name_of(o.precision),
        o.precision == precision::int8
            ? "this processor has no products of int8 that edl uses (avx512_vnni in /proc/cpuinfo)"
#ifdef EDL_ONEDNN
            : "this processor has no products of bfloat16 that edl uses (avx512_bf16 or amx_bf16 in "
              "/proc/cpuinfo)"
#else
            : "this build was made without oneDNN"
#endif
        ));
  return o;
}

}  // namespace edl
