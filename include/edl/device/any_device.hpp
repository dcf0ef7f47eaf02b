// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "edl/core/random.hpp"
#include "edl/device/backend.hpp"
#include "edl/device/device.hpp"

namespace edl {

/// Memory of a backend, zeroed. The host looks into its span only where the backend says so. Movable.
class any_buffer {
 public:
  any_buffer() = default;
  any_buffer(std::shared_ptr<device_backend> of, std::size_t size)
      : of_(std::move(of)), data_(size > 0 ? of_->allocate(size) : nullptr), size_(size) {}
  any_buffer(any_buffer&& other) noexcept
      : of_(std::move(other.of_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  any_buffer& operator=(any_buffer&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~any_buffer() {
    if (data_) of_->release(data_, size_);
  }

  std::span<float> span() { return {data_, size_}; }
  view<float> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<device_backend> of_;
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The device that is chosen when the program runs: it forwards to its backend, which is never null. Movable.
/// Thread safety: distinct objects of different backends: safe. Shared objects: unsafe.
class any_device {
 public:
  using scalar = float;
  using options = std::shared_ptr<device_backend>;
  using buffer = any_buffer;

  explicit any_device(options backend) : backend_(std::move(backend)) {}

  device_backend* operator->() const { return backend_.get(); }
  std::shared_ptr<device_backend> const& backend() const { return backend_; }

 private:
  std::shared_ptr<device_backend> backend_;
};

// The operations: see `concept device`.

inline any_buffer allocate(any_device& d, std::size_t n) { return {d.backend(), n}; }
inline void upload(any_device& d, view<float> host, std::span<float> to) {
  d->upload(std::as_bytes(host), to.data());
}
inline void download(any_device& d, view<float> from, std::span<float> host) {
  d->download(from.data(), std::as_writable_bytes(host));
  d->synchronize();
}
inline void bind_parameters(any_device& d, view<float> parameters) { d->bind(parameters); }
inline void finish(any_device& d) { d->synchronize(); }
inline bool in_host_memory(any_device const& d) { return d->in_host_memory(); }

inline void conv2d_forward(any_device& d, conv_geometry const& g, int batch, activation f, view<float> x,
                           view<float> kernel, view<float> bias, std::span<float> y) {
  d->conv2d_forward(g, batch, f, x, kernel, bias, y);
}
inline void conv2d_backward(any_device& d, conv_geometry const& g, int batch, view<float> x,
                            view<float> kernel, view<float> dy, std::span<float> dx, std::span<float> dkernel,
                            std::span<float> dbias) {
  d->conv2d_backward(g, batch, x, kernel, dy, dx, dkernel, dbias);
}
inline std::string describe_conv2d(any_device& d, conv_geometry const& g, int batch) {
  return d->describe_conv2d(g, batch);
}
inline void dense_forward(any_device& d, std::size_t rows, std::size_t inputs, std::size_t outputs,
                          activation f, view<float> x, view<float> kernel, view<float> bias,
                          std::span<float> y) {
  d->dense_forward(rows, inputs, outputs, f, x, kernel, bias, y);
}
inline void dense_backward(any_device& d, std::size_t rows, std::size_t inputs, std::size_t outputs,
                           view<float> x, view<float> kernel, view<float> dy, std::span<float> dx,
                           std::span<float> dkernel, std::span<float> dbias) {
  d->dense_backward(rows, inputs, outputs, x, kernel, dy, dx, dkernel, dbias);
}
inline std::string describe_dense(any_device& d, std::size_t rows, std::size_t inputs, std::size_t outputs) {
  return d->describe_dense(rows, inputs, outputs);
}

inline void max_pool_forward(any_device& d, pool_geometry const& g, int batch, view<float> x,
                             std::span<float> y) {
  d->max_pool_forward(g, batch, x, y);
}
inline void max_pool_backward(any_device& d, pool_geometry const& g, int batch, view<float> x, view<float> y,
                              view<float> dy, std::span<float> dx) {
  d->max_pool_backward(g, batch, x, y, dy, dx);
}
inline void average_pool_forward(any_device& d, pool_geometry const& g, int batch, view<float> x,
                                 std::span<float> y) {
  d->average_pool_forward(g, batch, x, y);
}
inline void average_pool_backward(any_device& d, pool_geometry const& g, int batch, view<float> dy,
                                  std::span<float> dx) {
  d->average_pool_backward(g, batch, dy, dx);
}

inline void relu_forward(any_device& d, view<float> x, std::span<float> y) {
  d->forward(device_backend::function::relu, 0, x, y);
}
inline void relu_backward(any_device& d, view<float> y, view<float> dy, std::span<float> dx) {
  d->backward(device_backend::function::relu, 0, y, dy, dx);
}
inline void leaky_relu_forward(any_device& d, float slope, view<float> x, std::span<float> y) {
  d->forward(device_backend::function::leaky_relu, slope, x, y);
}
inline void leaky_relu_backward(any_device& d, float slope, view<float> y, view<float> dy,
                                std::span<float> dx) {
  d->backward(device_backend::function::leaky_relu, slope, y, dy, dx);
}
inline void sigmoid_forward(any_device& d, view<float> x, std::span<float> y) {
  d->forward(device_backend::function::sigmoid, 0, x, y);
}
inline void sigmoid_backward(any_device& d, view<float> y, view<float> dy, std::span<float> dx) {
  d->backward(device_backend::function::sigmoid, 0, y, dy, dx);
}
inline void tanh_forward(any_device& d, view<float> x, std::span<float> y) {
  d->forward(device_backend::function::tanh, 0, x, y);
}
inline void tanh_backward(any_device& d, view<float> y, view<float> dy, std::span<float> dx) {
  d->backward(device_backend::function::tanh, 0, y, dy, dx);
}
inline void gelu_forward(any_device& d, view<float> x, std::span<float> y) {
  d->forward(device_backend::function::gelu, 0, x, y);
}
inline void gelu_backward(any_device& d, view<float> x, view<float> dy, std::span<float> dx) {
  d->backward(device_backend::function::gelu, 0, x, dy, dx);
}
inline void multiply(any_device& d, float factor, view<float> x, std::span<float> y) {
  d->forward(device_backend::function::scale, factor, x, y);
}
inline void softmax_forward(any_device& d, std::size_t rows, std::size_t classes, view<float> x,
                            std::span<float> y) {
  d->softmax_forward(rows, classes, x, y);
}
inline void softmax_backward(any_device& d, std::size_t rows, std::size_t classes, view<float> y,
                             view<float> dy, std::span<float> dx) {
  d->softmax_backward(rows, classes, y, dy, dx);
}

inline void batch_norm_train(any_device& d, norm_chain const& c, int batch, float momentum, float epsilon,
                             view<float> x, view<float> gamma, view<float> beta, view<float> more,
                             std::span<float> running_mean, std::span<float> running_variance,
                             std::span<float> y, std::span<float> kept) {
  d->batch_norm_train(c, batch, momentum, epsilon, x, gamma, beta, more, running_mean, running_variance, y,
                      kept);
}
inline void batch_norm_evaluate(any_device& d, norm_chain const& c, int batch, float epsilon, view<float> x,
                                view<float> gamma, view<float> beta, view<float> more,
                                view<float> running_mean, view<float> running_variance, std::span<float> y,
                                std::span<float> kept) {
  d->batch_norm_evaluate(c, batch, epsilon, x, gamma, beta, more, running_mean, running_variance, y, kept);
}
inline void batch_norm_again(any_device& d, norm_chain const& c, int batch, view<float> x, view<float> gamma,
                             view<float> beta, view<float> kept, std::span<float> y) {
  d->batch_norm_again(c, batch, x, gamma, beta, kept, y);
}
inline void batch_norm_backward(any_device& d, norm_chain const& c, int batch, bool through, view<float> x,
                                view<float> gamma, view<float> beta, view<float> dy, view<float> kept,
                                std::span<float> dx, std::span<float> dgamma, std::span<float> dbeta) {
  d->batch_norm_backward(c, batch, through, x, gamma, beta, dy, kept, dx, dgamma, dbeta);
}

inline void embedding_forward(any_device& d, embedding_geometry const& g, int batch, view<float> ids,
                              view<float> table, std::span<float> y) {
  d->embedding_forward(g, batch, ids, table, y);
}
inline void embedding_backward(any_device& d, embedding_geometry const& g, int batch, view<float> ids,
                               view<float> dy, std::span<float> dx, std::span<float> dtable) {
  d->embedding_backward(g, batch, ids, dy, dx, dtable);
}

inline void dropout_forward(any_device& d, float rate, random_stream const& random, view<float> x,
                            std::span<float> y, std::span<std::byte> mask) {
  d->dropout_forward(rate, random, x, y, mask);
}
inline void dropout_backward(any_device& d, float rate, std::span<std::byte const> mask, view<float> dy,
                             std::span<float> dx) {
  d->dropout_backward(rate, mask, dy, dx);
}
inline void copy(any_device& d, view<float> x, std::span<float> y) { d->copy(x, y); }
inline void add(any_device& d, activation f, view<float> a, view<float> b, std::span<float> y) {
  d->add(f, a, b, y);
}
inline void add_masked(any_device& d, view<float> a, view<float> b, view<float> x, std::span<float> y) {
  d->add_masked(a, b, x, y);
}
inline void halve(any_device& d, view<float> x, std::span<std::byte> to) { d->halve(x, to); }
inline void restore(any_device& d, std::span<std::byte const> from, std::span<float> y) {
  d->restore(from, y);
}
inline void copy_columns(any_device& d, std::size_t rows, std::size_t columns, view<float> x,
                         std::size_t x_first, std::size_t x_stride, std::span<float> y, std::size_t y_first,
                         std::size_t y_stride) {
  d->copy_columns(rows, columns, x, x_first, x_stride, y, y_first, y_stride);
}

static_assert(device<any_device>);

}  // namespace edl
