// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <new>

#include "edl/core/inline.hpp"
#include "edl/device/cpu.hpp"
#include "edl/device/cpu/backend.hpp"

namespace edl {

EDL_INLINE float* cpu_backend::allocate(std::size_t floats) {
  if (floats > std::size_t(-1) / 2 / sizeof(float)) throw std::bad_array_new_length();
  return static_cast<float*>(detail::take_memory(floats * sizeof(float)));
}

EDL_INLINE void cpu_backend::release(float* memory, std::size_t floats) noexcept {
  detail::give_memory(memory, floats * sizeof(float));
}

EDL_INLINE bool cpu_backend::in_host_memory() const { return true; }

EDL_INLINE void cpu_backend::upload(std::span<std::byte const> host, void* to) {
  if (!host.empty()) std::memcpy(to, host.data(), host.size());
}

EDL_INLINE void cpu_backend::download(void const* from, std::span<std::byte> host) {
  if (!host.empty()) std::memcpy(host.data(), from, host.size());
}

EDL_INLINE void cpu_backend::bind(in) {}

EDL_INLINE void cpu_backend::synchronize() {}

EDL_INLINE void cpu_backend::conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel,
                                            in bias, out y) {
  edl::conv2d_forward(cpu_, g, batch, f, x, kernel, bias, y);
}

EDL_INLINE void cpu_backend::conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy,
                                             out dx, out dkernel, out dbias) {
  edl::conv2d_backward(cpu_, g, batch, x, kernel, dy, dx, dkernel, dbias);
}

EDL_INLINE void cpu_backend::dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs,
                                           activation f, in x, in kernel, in bias, out y) {
  edl::dense_forward(cpu_, rows, inputs, outputs, f, x, kernel, bias, y);
}

EDL_INLINE void cpu_backend::dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x,
                                            in kernel, in dy, out dx, out dkernel, out dbias) {
  edl::dense_backward(cpu_, rows, inputs, outputs, x, kernel, dy, dx, dkernel, dbias);
}

EDL_INLINE std::string cpu_backend::describe_conv2d(conv_geometry const& g, int batch) {
  return edl::describe_conv2d(cpu_, g, batch);
}

EDL_INLINE std::string cpu_backend::describe_dense(std::size_t rows, std::size_t inputs,
                                                   std::size_t outputs) {
  return edl::describe_dense(cpu_, rows, inputs, outputs);
}

EDL_INLINE void cpu_backend::max_pool_forward(pool_geometry const& g, int batch, in x, out y) {
  edl::max_pool_forward(cpu_, g, batch, x, y);
}

EDL_INLINE void cpu_backend::max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) {
  edl::max_pool_backward(cpu_, g, batch, x, y, dy, dx);
}

EDL_INLINE void cpu_backend::average_pool_forward(pool_geometry const& g, int batch, in x, out y) {
  edl::average_pool_forward(cpu_, g, batch, x, y);
}

EDL_INLINE void cpu_backend::average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) {
  edl::average_pool_backward(cpu_, g, batch, dy, dx);
}

EDL_INLINE void cpu_backend::batch_norm_train(norm_chain const& c, int batch, float momentum, float epsilon,
                                              in x, in gamma, in beta, in more, out running_mean,
                                              out running_variance, out y, out kept) {
  edl::batch_norm_train(cpu_, c, batch, momentum, epsilon, x, gamma, beta, more, running_mean,
                        running_variance, y, kept);
}

EDL_INLINE void cpu_backend::batch_norm_evaluate(norm_chain const& c, int batch, float epsilon, in x,
                                                 in gamma, in beta, in more, in running_mean,
                                                 in running_variance, out y, out kept) {
  edl::batch_norm_evaluate(cpu_, c, batch, epsilon, x, gamma, beta, more, running_mean, running_variance, y,
                           kept);
}

EDL_INLINE void cpu_backend::batch_norm_again(norm_chain const& c, int batch, in x, in gamma, in beta,
                                              in kept, out y) {
  edl::batch_norm_again(cpu_, c, batch, x, gamma, beta, kept, y);
}

EDL_INLINE void cpu_backend::batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma,
                                                 in beta, in dy, in kept, out dx, out dgamma, out dbeta) {
  edl::batch_norm_backward(cpu_, c, batch, through, x, gamma, beta, dy, kept, dx, dgamma, dbeta);
}

EDL_INLINE void cpu_backend::forward(function f, float slope, in x, out y) {
  switch (f) {
    case function::relu:
      return relu_forward(cpu_, x, y);
    case function::leaky_relu:
      return leaky_relu_forward(cpu_, slope, x, y);
    case function::sigmoid:
      return sigmoid_forward(cpu_, x, y);
    case function::tanh:
      return tanh_forward(cpu_, x, y);
    case function::gelu:
      return gelu_forward(cpu_, x, y);
    case function::scale:
      return multiply(cpu_, slope, x, y);
  }
}

EDL_INLINE void cpu_backend::backward(function f, float slope, in y, in dy, out dx) {
  switch (f) {
    case function::relu:
      return relu_backward(cpu_, y, dy, dx);
    case function::leaky_relu:
      return leaky_relu_backward(cpu_, slope, y, dy, dx);
    case function::sigmoid:
      return sigmoid_backward(cpu_, y, dy, dx);
    case function::tanh:
      return tanh_backward(cpu_, y, dy, dx);
    case function::gelu:
      return gelu_backward(cpu_, y, dy, dx);
    case function::scale:
      return multiply(cpu_, slope, dy, dx);
  }
}

EDL_INLINE void cpu_backend::dropout_forward(float rate, random_stream const& random, in x, out y,
                                             std::span<std::byte> mask) {
  edl::dropout_forward(cpu_, rate, random, x, y, mask);
}

EDL_INLINE void cpu_backend::dropout_backward(float rate, std::span<std::byte const> mask, in dy, out dx) {
  edl::dropout_backward(cpu_, rate, mask, dy, dx);
}

EDL_INLINE void cpu_backend::copy(in x, out y) { edl::copy(cpu_, x, y); }

EDL_INLINE void cpu_backend::add(activation f, in a, in b, out y) { edl::add(cpu_, f, a, b, y); }

EDL_INLINE void cpu_backend::add_masked(in a, in b, in x, out y) { edl::add_masked(cpu_, a, b, x, y); }

EDL_INLINE void cpu_backend::halve(in x, std::span<std::byte> to) { edl::halve(cpu_, x, to); }

EDL_INLINE void cpu_backend::restore(std::span<std::byte const> from, out y) { edl::restore(cpu_, from, y); }

EDL_INLINE void cpu_backend::copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first,
                                          std::size_t x_stride, out y, std::size_t y_first,
                                          std::size_t y_stride) {
  edl::copy_columns(cpu_, rows, columns, x, x_first, x_stride, y, y_first, y_stride);
}

EDL_INLINE void cpu_backend::embedding_forward(embedding_geometry const& g, int batch, in ids, in table,
                                               out y) {
  edl::embedding_forward(cpu_, g, batch, ids, table, y);
}

EDL_INLINE void cpu_backend::embedding_backward(embedding_geometry const& g, int batch, in ids, in dy, out dx,
                                                out dtable) {
  edl::embedding_backward(cpu_, g, batch, ids, dy, dx, dtable);
}

EDL_INLINE void cpu_backend::softmax_forward(std::size_t rows, std::size_t classes, in x, out y) {
  edl::softmax_forward(cpu_, rows, classes, x, y);
}

EDL_INLINE void cpu_backend::softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) {
  edl::softmax_backward(cpu_, rows, classes, y, dy, dx);
}

}  // namespace edl
