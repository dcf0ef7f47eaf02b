// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/device/cuda/library/matrix.hpp"
#include "edl/compute/device/cuda/library/products.hpp"
#include "edl/compute/device/cuda/library/trial.hpp"

namespace edl::cuda_library {

/// Dense layers by cuBLASLt. A row-major matrix is a column-major transpose, and cuBLASLt receives all
/// matrices so. Every algorithm that it proposes is tried before it is used; our own kernels replace it if
/// none computes correctly.
class dense_layers {
 public:
  dense_layers(cuda_kernels::queue const& q, products::shared_state const& shared);

  void forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, void const* x,
               float const* kernel, float const* bias, void* y);
  void backward(std::size_t rows, std::size_t inputs, std::size_t outputs, void const* x, float const* kernel,
                void const* dy, void* dx, float* dkernel, float* dbias);
  void forward_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                    void const* x, float const* kernel, std::uint16_t const* rounded, void* y);
  void weights_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                    void const* x, void const* dy, float* dkernel);
  std::string describe(std::size_t rows, std::size_t inputs, std::size_t outputs);

 private:
  struct chosen {
    product computed;                     ///< as wanted, or without what should follow it
    std::optional<product_way> way = {};  ///< none: our own kernels

    std::size_t workspace() const { return way ? way->workspace : 0; }
  };
  using tensors = trial::tensors;
  using runner = std::function<void(chosen const&, tensors const&)>;

  /// A layer as a convolution of one place.
  struct layer {
    conv_geometry g;
    int batch;
    activation f = activation::none;
  };
  static layer layer_of(std::size_t rows, std::size_t inputs, std::size_t outputs,
                        activation f = activation::none);

  cudaDataType_t type() const { return q_.half ? CUDA_R_16BF : CUDA_R_32F; }
  std::size_t element() const { return q_.half ? 2 : sizeof(float); }
  std::uint16_t const* rounded(float const* variable) const;
  product forward_product(std::size_t rows, std::size_t inputs, std::size_t outputs) const;
  product data_product(std::size_t rows, std::size_t inputs, std::size_t outputs) const;
  product weights_product(std::size_t rows, std::size_t inputs, std::size_t outputs) const;

  /// cuBLASLt's proposals; sets `rule` to the one that its heuristic prefers.
  std::vector<chosen> ways(product const& wanted, std::size_t& rule);
  std::vector<chosen> right_ways(product const& wanted, layer const& l, tensors const& of,
                                 runner const& with);
  /// Computes `wanted` by the best known kernel, which it determines first if necessary.
  void run(product const& wanted, layer const& l, tensors const& of, runner const& with);

  cuda_kernels::queue const& q_;
  products::shared_state const& shared_;
  matrix_products matrices_;
  std::map<product, chosen> known_;
  std::set<std::string> told_;                        // algorithms reported as wrong
  std::set<std::pair<product, std::string>> failed_;  // algorithms that failed after they were chosen
};

}  // namespace edl::cuda_library
