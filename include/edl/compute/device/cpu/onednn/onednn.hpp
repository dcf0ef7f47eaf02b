// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"

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

/// c = a · b on all of the device's threads, which share columns of c, or rows. False: not done.
bool onednn_multiply_float32(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                             std::size_t k, matrix<float> a, matrix<float> b, float* c, std::size_t c_stride);

/// The same with factors rounded to bfloat16, unless they are narrow, and sums in float32. `narrow` is of c.
bool onednn_multiply_bfloat16(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                              std::size_t k, matrix<float> a, matrix<float> b, float* c, std::size_t c_stride,
                              bool narrow);

class matmul_kernel;

/// A matrix of which each thread multiplies by its own columns, many times.
struct packed_shape {
  std::size_t rows, k;  ///< of the other factor: rows at most
  product_split units;  ///< of which the threads have parts
  std::size_t gates;    ///< columns of each unit
  std::size_t stride;   ///< of a part as it comes; 0: its columns, without gaps
  bool transposed, bfloat16;
  bool whole;  ///< every product has all rows
};

/// Products of few rows by such a matrix, which oneDNN lays out as its kernel likes it. Factors are rounded
/// to bfloat16 on demand, sums are float32. It lives for one operation of the device, and is made on the
/// calling thread.
class packed_products {
 public:
  packed_products() = default;
  packed_products(basic_cpu<float>& cpu, packed_shape const& of);

  /// False: there is no kernel, and nothing else is to be called.
  explicit operator bool() const { return levels_ > 0; }

  /// Floats that a thread's part of the matrix takes, and those that its products work in.
  std::size_t room(int thread) const;
  std::size_t scratch(int thread) const;

  void lay_out(int thread, float const* part, float* room) const;

  /// c (rows × the thread's columns) = a (rows × k, of bfloat16 where factors are) · part. More rows than
  /// these may be read and written, `rows` of the shape at most.
  void multiply(int thread, std::size_t rows, void const* a, float const* part, float* c,
                float* scratch) const;

 private:
  std::size_t rows_at(std::size_t level) const;
  matmul_kernel& kernel(std::size_t level, int thread) const;

  matmul_kernel* const* kernels_ = nullptr;  // of each level, one for each thread
  packed_shape shape_{};
  std::size_t levels_ = 0;  // kernels for a part of the rows each, the last one for all
};

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/onednn/onednn.ipp"
#endif
