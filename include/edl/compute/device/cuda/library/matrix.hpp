// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/device/cuda/options.hpp"

namespace edl::cuda_library {

/// A product of matrices as cuBLASLt counts: by columns. d (m × n) = a (m × k) · b (k × n), where `a_turned`
/// and `b_turned` say that the memory holds the transpose.
struct product {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;  ///< as many of them, whose matrices lie one after the other
  bool a_turned = false, b_turned = false;
  cudaDataType_t in = CUDA_R_32F, out = CUDA_R_32F;
  cublasLtEpilogue_t after = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t a_aligned = 256, b_aligned = 256, d_aligned = 256;  ///< addresses, in bytes

  friend auto operator<=>(product const&, product const&) = default;
  std::string describe() const;
};

constexpr std::size_t bias_alignment = 16;  // bytes

/// A way to compute a product.
struct product_way {
  cublasLtMatmulAlgo_t algorithm;
  std::size_t workspace = 0;  ///< bytes
};

class matrix_products {
 public:
  explicit matrix_products(edl::precision p);
  ~matrix_products();

  /// What cuBLASLt proposes, the fastest by its estimate first; nothing if it cannot.
  std::vector<product_way> propose(product const& p);

  /// `more` is the bias, or where its gradient goes: as many elements as d has rows, of the type `out`, at a
  /// multiple of `bias_alignment`. `workspace` is aligned to 256 bytes.
  void run(product const& p, product_way const& way, void const* a, void const* b, void* d, void* more,
           void* workspace, cudaStream_t stream);

 private:
  struct prepared;
  prepared& prepare(product const& p);
  struct state;
  std::unique_ptr<state> s_;
};

/// "cuBLASLt algorithm 66 (tile 20, stages 24), split 2"
std::string describe(product_way const& way);

}  // namespace edl::cuda_library
