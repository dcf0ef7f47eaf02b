// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "edl/compute/device/precision.hpp"

namespace edl {

/// The choice of kernels.
enum class kernels {
  measured,  ///< the fastest for every shape on this machine
  fixed,     ///< by a rule for every shape: the same bits in every run
  direct,    ///< as fixed, but without Winograd's, which multiplies less and rounds more
  own        ///< no kernels of libraries
};

/// The names of the kernels in flags, in order.
constexpr std::array<std::string_view, 4> names(kernels) { return {"measured", "fixed", "direct", "own"}; }

struct cpu_options {
  int threads = 1;  ///< number of threads, including the caller
  edl::kernels kernels = edl::kernels::fixed;
  std::string kernel_cache{};  ///< the file that stores measurements; empty: none
  /// The precision of dense layers and convolutions.
  edl::precision precision = edl::precision::float32;
  /// Whether to cache kernels in the layouts of libraries for small batches, in at most 64 MiB. It pays when
  /// the kernels are no longer trained (see basic_cpu::kernels_written).
  bool keep_kernels = false;
};

/// Throws edl::error if the processor lacks instructions for which edl was compiled.
void check_processor();

/// Whether this processor multiplies such factors faster than float32. bfloat16 needs oneDNN and AVX512-BF16
/// or AMX, int8 needs AVX512-VNNI.
bool multiplies(precision factors);

/// Returns `o` if this processor supports it. Throws edl::error for tf32, and for a precision without fast
/// products. `kernels::own` accepts them on any processor: it rounds as much and multiplies in float32, or
/// quantises as much and multiplies integers one by one.
cpu_options const& supported(cpu_options const& o);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/options.ipp"
#endif
