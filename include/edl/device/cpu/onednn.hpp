// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/cpu/gemm.hpp"

namespace edl::detail {

/// Whether this build found oneDNN. Where it did not, nothing is ever computed by it.
bool has_onednn();

/// While it lives, oneDNN uses the calling thread alone: the shares of a batch are ours to cut.
class onednn_alone {
 public:
  onednn_alone();
  ~onednn_alone();
  onednn_alone(onednn_alone const&) = delete;

 private:
  int before_ = 1;
};

/// c = a · b, or with `add` c += a · b, on the calling thread alone. False: not done, the caller does it.
bool onednn_multiply(std::size_t m, std::size_t n, std::size_t k, matrix<float> a, matrix<float> b, float* c,
                     std::size_t c_stride, bool add = false);

/// c = a · b on all of the device's threads, with factors rounded to bfloat16 and sums in float32. The
/// threads share columns of c, or rows. False: not done.
bool onednn_multiply_bfloat16(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                              std::size_t k, matrix<float> a, matrix<float> b, float* c,
                              std::size_t c_stride);

/// c (m × n, whole numbers of 32 bits) = a · b, rows without gaps, on all of the device's threads. False: not
/// done.
bool onednn_multiply_int8(basic_cpu<float>& cpu, std::size_t m, std::size_t n, std::size_t k,
                          std::int8_t const* a, std::int8_t const* b, std::span<float> c);

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/onednn.ipp"
#endif
