// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "edl/compute/device/precision.hpp"

namespace edl {

/// Which kernels compute.
enum class kernels {
  measured,  ///< for every shape the fastest on this machine
  fixed,     ///< for every shape by a rule: the same bits in every run
  direct,    ///< the same, but none that multiplies less and rounds more (Winograd's)
  own        ///< none of a library
};

/// Their names, in order.
constexpr std::array<std::string_view, 4> names(kernels) { return {"measured", "fixed", "direct", "own"}; }

struct cpu_options {
  int threads = 1;  ///< that compute, the caller among them
  edl::kernels kernels = edl::kernels::fixed;
  std::string kernel_cache{};  ///< the file in which measurements are remembered; empty: none
  /// How exactly dense layers and convolutions are computed.
  edl::precision precision = edl::precision::float32;
  /// Whether kernels are kept as a library wants them, where samples are few, in at most 64 MiB more. It pays
  /// where they are not trained any more (see basic_cpu::kernels_written).
  bool keep_kernels = false;
};

/// Throws edl::error where the processor lacks instructions that everything is compiled with.
void check_processor();

/// Whether there are products of such factors that are faster than float32's on this processor. bfloat16
/// needs oneDNN and AVX512-BF16 or AMX, int8 needs AVX512-VNNI.
bool multiplies(precision factors);

/// `o`, where this processor computes so. Throws edl::error for tf32, and for a precision without such
/// products. `kernels::own` take them on any processor: they round as much and multiply in float32,
/// or quantise as much and multiply whole numbers one by one.
cpu_options const& supported(cpu_options const& o);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/options.ipp"
#endif
