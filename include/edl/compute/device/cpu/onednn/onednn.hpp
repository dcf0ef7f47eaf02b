// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"

namespace edl::detail {

/// Whether this build includes oneDNN. Otherwise the functions below never compute anything.
bool has_onednn();

/// While it lives, oneDNN uses only the calling thread: edl divides the batch itself.
class onednn_alone {
 public:
  onednn_alone();
  ~onednn_alone();
  onednn_alone(onednn_alone const&) = delete;

 private:
  int before_ = 1;
};

/// c = a · b, or with `add` c += a · b, on the calling thread only. False: not computed; the caller must do
/// it.
bool onednn_multiply(std::size_t m, std::size_t n, std::size_t k, matrix<float> a, matrix<float> b, float* c,
                     std::size_t c_stride, bool add = false);

/// c = a · b on all threads of the device, which share the columns or the rows of c. False: not computed.
bool onednn_multiply_float32(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                             std::size_t k, matrix<float> a, matrix<float> b, float* c, std::size_t c_stride);

/// The same with factors rounded to bfloat16, unless they are narrow, and float32 sums. `narrow` describes c.
bool onednn_multiply_bfloat16(basic_cpu<float>& cpu, bool by_columns, std::size_t m, std::size_t n,
                              std::size_t k, matrix<float> a, matrix<float> b, float* c, std::size_t c_stride,
                              bool narrow);

class matmul_kernel;

/// A matrix by whose columns each thread multiplies many times.
struct packed_shape {
  std::size_t rows, k;  ///< of the other factor: rows at most
  product_split units;  ///< of which the threads have parts
  std::size_t gates;    ///< columns of each unit
  std::size_t stride;   ///< of a part as it comes; 0: its columns, without gaps
  bool transposed, bfloat16;
  bool whole;  ///< every product has all rows
};

/// Products of a few rows by such a matrix, which is packed in the layout of oneDNN's kernel. Factors are
/// rounded to bfloat16 on request; sums are float32. It lives for one operation of the device. Construct it
/// on the calling thread.
class packed_products {
 public:
  packed_products() = default;
  packed_products(basic_cpu<float>& cpu, packed_shape const& of);

  /// False: there is no kernel, and no other function may be called.
  explicit operator bool() const { return levels_ > 0; }

  /// Floats that a thread's part of the matrix takes, and those of its products' scratch memory.
  std::size_t room(int thread) const;
  std::size_t scratch(int thread) const;

  void lay_out(int thread, float const* part, float* room) const;

  /// c (rows × the thread's columns) = a (rows × k, bfloat16 if the factors are) · part. It may read and
  /// write more rows than these, at most `rows` of the shape.
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
