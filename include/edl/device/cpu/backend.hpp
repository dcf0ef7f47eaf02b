// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "edl/device/backend.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// The processor at hand as a backend: each call does its operation on `cores()` before it returns.
class cpu_backend final : public device_backend {
 public:
  explicit cpu_backend(cpu_options const& o) : cpu_(o) {}

  basic_cpu<float>& cores() { return cpu_; }

  float* allocate(std::size_t floats) override;
  void release(float* memory, std::size_t floats) noexcept override;
  bool in_host_memory() const override;
  void upload(std::span<std::byte const> host, void* to) override;
  void download(void const* from, std::span<std::byte> host) override;
  void bind(in parameters) override;
  void synchronize() override;
  void conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel, in bias,
                      out y) override;
  void conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy, out dx, out dkernel,
                       out dbias) override;
  void dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, in x, in kernel,
                     in bias, out y) override;
  void dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x, in kernel, in dy,
                      out dx, out dkernel, out dbias) override;
  std::string describe_conv2d(conv_geometry const& g, int batch) override;
  std::string describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) override;
  void max_pool_forward(pool_geometry const& g, int batch, in x, out y) override;
  void max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) override;
  void average_pool_forward(pool_geometry const& g, int batch, in x, out y) override;
  void average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) override;
  void batch_norm_train(norm_chain const& c, int batch, float momentum, float epsilon, in x, in gamma,
                        in beta, in more, out running_mean, out running_variance, out y, out kept) override;
  void batch_norm_evaluate(norm_chain const& c, int batch, float epsilon, in x, in gamma, in beta, in more,
                           in running_mean, in running_variance, out y, out kept) override;
  void batch_norm_again(norm_chain const& c, int batch, in x, in gamma, in beta, in kept, out y) override;
  void batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma, in beta, in dy,
                           in kept, out dx, out dgamma, out dbeta) override;
  void forward(function f, float slope, in x, out y) override;
  void backward(function f, float slope, in y, in dy, out dx) override;
  void dropout_forward(float rate, random_stream const& random, in x, out y,
                       std::span<std::byte> mask) override;
  void dropout_backward(float rate, std::span<std::byte const> mask, in dy, out dx) override;
  void copy(in x, out y) override;
  void add(activation f, in a, in b, out y) override;
  void add_masked(in a, in b, in x, out y) override;
  void halve(in x, std::span<std::byte> to) override;
  void restore(std::span<std::byte const> from, out y) override;
  void copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first, std::size_t x_stride,
                    out y, std::size_t y_first, std::size_t y_stride) override;
  void embedding_forward(embedding_geometry const& g, int batch, in ids, in table, out y) override;
  void embedding_backward(embedding_geometry const& g, int batch, in ids, in dy, out dx, out dtable) override;
  void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) override;
  void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) override;

 private:
  basic_cpu<float> cpu_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/backend.ipp"
#endif
