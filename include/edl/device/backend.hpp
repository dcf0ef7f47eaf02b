// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "edl/core/random.hpp"
#include "edl/core/span.hpp"
#include "edl/device/activation.hpp"
#include "edl/device/geometry.hpp"

namespace edl {

/// What computes, whatever it is: memory of its own and the operations of `concept device` in single
/// precision, behind virtual functions, so that a network is compiled once for all that may compute it.
///
/// Spans named `host` are host memory, all others this one's, from `allocate`. Calls may return before the
/// work is done. Throws edl::error; what happens to work under way may come with a later call. Thread safety:
/// distinct objects: safe. Shared objects: unsafe.
class device_backend {
 public:
  using in = view<float>;
  using out = std::span<float>;

  virtual ~device_backend() = default;

  // ---- Memory ----

  virtual float* allocate(std::size_t floats) = 0;  ///< zeroed
  virtual void release(float* memory, std::size_t floats) noexcept = 0;

  /// The host may read and write that memory, too.
  virtual bool in_host_memory() const { return false; }

  /// Copies. What is not pinned has been read, or written, on return.
  virtual void upload(std::span<std::byte const> host, void* to) = 0;
  virtual void download(void const* from, std::span<std::byte> host) = 0;

  /// The variables that will be factors of products.
  virtual void bind(in parameters) = 0;

  /// Waits until all is done.
  virtual void synchronize() = 0;

  // ---- Products ----

  virtual void conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel, in bias,
                              out y) = 0;
  virtual void conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy, out dx, out dkernel,
                               out dbias) = 0;
  virtual void dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, in x,
                             in kernel, in bias, out y) = 0;
  virtual void dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x, in kernel,
                              in dy, out dx, out dkernel, out dbias) = 0;
  virtual std::string describe_conv2d(conv_geometry const& g, int batch) = 0;
  virtual std::string describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) = 0;

  // ---- Windows ----

  virtual void max_pool_forward(pool_geometry const& g, int batch, in x, out y) = 0;
  virtual void max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) = 0;
  virtual void average_pool_forward(pool_geometry const& g, int batch, in x, out y) = 0;
  virtual void average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) = 0;

  // ---- Normalisation ----

  virtual void batch_norm_train(norm_chain const& c, int batch, float momentum, float epsilon, in x, in gamma,
                                in beta, in more, out running_mean, out running_variance, out y,
                                out kept) = 0;
  virtual void batch_norm_evaluate(norm_chain const& c, int batch, float epsilon, in x, in gamma, in beta,
                                   in more, in running_mean, in running_variance, out y, out kept) = 0;
  virtual void batch_norm_again(norm_chain const& c, int batch, in x, in gamma, in beta, in kept, out y) = 0;
  virtual void batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma, in beta,
                                   in dy, in kept, out dx, out dgamma, out dbeta) = 0;

  // ---- Element by element ----

  enum class function : std::uint8_t { relu, leaky_relu, sigmoid, tanh, gelu, scale };
  virtual void forward(function f, float slope, in x, out y) = 0;
  virtual void backward(function f, float slope, in y, in dy, out dx) = 0;  ///< gelu: x for y
  virtual void dropout_forward(float rate, random_stream const& random, in x, out y,
                               std::span<std::byte> mask) = 0;
  virtual void dropout_backward(float rate, std::span<std::byte const> mask, in dy, out dx) = 0;
  virtual void copy(in x, out y) = 0;
  virtual void add(activation f, in a, in b, out y) = 0;
  virtual void add_masked(in a, in b, in x, out y) = 0;
  virtual void halve(in x, std::span<std::byte> to) = 0;
  virtual void restore(std::span<std::byte const> from, out y) = 0;

  /// Columns [x_first, x_first + columns) of rows of `x_stride`, to those from `y_first` of rows of
  /// `y_stride`.
  virtual void copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first,
                            std::size_t x_stride, out y, std::size_t y_first, std::size_t y_stride) = 0;

  // ---- Tables: ids are float32 always; the row of what is none is NaN, or an error ----

  virtual void embedding_forward(embedding_geometry const& g, int batch, in ids, in table, out y) = 0;
  virtual void embedding_backward(embedding_geometry const& g, int batch, in ids, in dy, out dx,
                                  out dtable) = 0;

  // ---- Rows ----

  virtual void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) = 0;
  virtual void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) = 0;
};

}  // namespace edl
