// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/compute/device/cuda/options.hpp"
#include "edl/compute/device/geometry.hpp"

namespace edl::cuda_library {

/// Convolutions by cuDNN's graph API and products of matrices by cuBLASLt, with biases and activations in the
/// same kernel where a library has one. Each shape's kernel is chosen when it is first asked for: by
/// measurement, or the library's first that keeps the precision; then it is kept. One that computes something
/// else (`trial`) is left out. Thread safety: one thread.
class products {
 public:
  struct shared_state {
    edl::precision precision = edl::precision::float32;
    bool measured = true;
    /// Scratch memory of the GPU for one operation, in floats; the same memory for every call. It may grow,
    /// which waits for all work, so it is never asked for while a graph is recorded for more than was had
    /// before.
    std::function<float*(std::size_t floats)> scratch;
    /// The same for moments, which the next operation reads.
    std::function<float*(std::size_t floats)> moments;
    /// A weight as the products read it: its copy in bfloat16 (in that precision, null if there is none yet),
    /// or null.
    std::function<std::uint16_t const*(float const* weight)> rounded;
    std::function<void(std::string const&)> warn;  ///< of kernels of libraries that compute something else
  };

  products(cuda_kernels::queue const& q, shared_state shared);  ///< `q` outlives this object
  ~products();

  /// "cuDNN 9.19.0, cuBLASLt 13.1.0"
  static std::string libraries();

  void conv2d_forward(conv_geometry const& g, int batch, activation f, void const* x, float const* kernel,
                      float const* bias, void* y);
  /// Without an activation, and with the moments of y's channels where they are to be had.
  cuda_kernels::moments_in_parts conv2d_moments(conv_geometry const& g, int batch, void const* x,
                                                float const* kernel, float const* bias, void* y);

  /// What is added to a gradient, which is 0 then where `above` (null: none) is not above 0.
  struct addition {
    void const *more = nullptr, *above = nullptr;  ///< no more: nothing is added
  };
  /// As a pass of its own.
  static void add(cuda_kernels::queue const& q, addition const& what, void* to, std::size_t n);

  /// True: `onto` was no pass of its own.
  bool conv2d_backward(conv_geometry const& g, int batch, void const* x, float const* kernel, void const* dy,
                       void* dx, float* dkernel, float* dbias, addition const& onto);
  void dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, void const* x,
                     float const* kernel, float const* bias, void* y);
  void dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, void const* x,
                      float const* kernel, void const* dy, void* dx, float* dkernel, float* dbias);
  /// Of `count` layers that lie one after the other: y = x · kernel, where `rounded` is the kernel in
  /// bfloat16 if that is how activations are; and dkernel = xᵀ · dy.
  void forward_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                    void const* x, float const* kernel, std::uint16_t const* rounded, void* y);
  void weights_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                    void const* x, void const* dy, float* dkernel);
  std::string describe_conv2d(conv_geometry const& g, int batch);
  std::string describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs);

 private:
  struct state;
  std::unique_ptr<state> s_;
};

}  // namespace edl::cuda_library
