// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/elementwise.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/compute/device/kept_places.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// A device that computes: a stream of work, memory of its own, and the operations that layers are made of. A
/// network is compiled once for every backend.
///
/// All extents are run-time values, and samples are channels last. Operations overwrite their outputs unless
/// a name says otherwise; outputs must not overlap inputs unless a comment allows it. Spans named `host` are
/// host memory, all others the backend's, from `allocate`. Calls may return before the work is done. Errors
/// are edl::error; a later call may throw the error of work that was still running. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
template <class T>
class basic_backend {
 public:
  using scalar = T;
  using in = view<T>;
  using out = std::span<T>;

  virtual ~basic_backend() = default;

  // ---- Memory ----

  virtual T* allocate(std::size_t n) = 0;  ///< zeroed
  virtual void release(T* memory, std::size_t n) noexcept = 0;

  /// Whether the host may access that memory, too.
  virtual bool in_host_memory() const { return false; }

  /// Whether operations that take `bfloat16_io` are faster with it. False while products are exact.
  virtual bool narrows() const { return false; }

  /// Copy memory. If the host memory is not pinned, the copy is complete on return.
  virtual void upload(std::span<std::byte const> host, void* to) = 0;
  virtual void download(void const* from, std::span<std::byte> host) = 0;

  /// Names the variables that will be factors of products.
  virtual void bind(in parameters) = 0;

  /// Waits until all issued work is done.
  virtual void synchronize() = 0;

  /// Copies values from host memory.
  void write(in host, out to) { upload(std::as_bytes(host), to.data()); }

  /// Copies values to host memory; the copy is complete on return.
  void read(in from, out host) {
    download(from.data(), std::as_writable_bytes(host));
    synchronize();
  }

  // ---- Products ----

  /// Switches exact products on or off: on, the backend computes products in float32; off, in the precision
  /// that it was opened with. Returns the previous setting. A backend whose activations are not float32
  /// ignores the call.
  virtual bool exact_products([[maybe_unused]] bool exact) { return false; }

  /// y = f(x ∗ kernel + bias). `bias` may be empty.
  virtual void conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel, in bias,
                              out y) = 0;

  /// The same without an activation. The next operation that reads y must be `batch_norm_train`, and nothing
  /// may write y before that.
  virtual void conv2d_forward_to_norm(conv_geometry const& g, int batch, in x, in kernel, in bias, out y) {
    conv2d_forward(g, batch, activation::none, x, kernel, bias, y);
  }

  /// Gradients of a convolution without its activation. An empty `dx`, `dkernel` or `dbias` is not computed.
  virtual void conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy, out dx, out dkernel,
                               out dbias) = 0;

  /// The same, with `more` added to dx. If `masked`, dx is then set to 0 where x is not above 0.
  /// `narrow_more` says how `more` lies in memory.
  virtual void conv2d_backward_onto(conv_geometry const& g, int batch, in x, in kernel, in dy, in more,
                                    bool masked, bool narrow_more, out dx, out dkernel, out dbias) {
    conv2d_backward(g, batch, x, kernel, dy, dx, dkernel, dbias);
    bfloat16_io const sides{narrow_more, g.narrow.in};
    if (masked)
      add_masked(dx, more, x, dx, sides);
    else
      add(activation::none, dx, more, dx, sides);
  }

  /// y (rows × outputs) = f(x (rows × inputs) · kernel (inputs × outputs) + bias). `bias` may be empty.
  /// `narrow` says how x lies in memory.
  virtual void dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, in x,
                             in kernel, in bias, out y, bool narrow = false) = 0;

  /// Gradients of a dense layer without its activation. An empty `dx`, `dkernel` or `dbias` is not computed;
  /// `x` is read for `dkernel` alone. `narrow` describes x and dx.
  virtual void dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x, in kernel,
                              in dy, out dx, out dkernel, out dbias, bool narrow = false) = 0;

  /// y = a · b for each of several pairs of matrices. Not every backend supports it.
  virtual void multiply_matrices(product_geometry const& g, in a, in b, out y) {
    lack("a product of matrices", g, a, b, y);
  }

  /// Transposes each of several matrices of `rows` × `columns`. Not every backend supports it.
  virtual void transpose(std::size_t matrices, std::size_t rows, std::size_t columns, in x, out y) {
    lack("a transposition", matrices, rows, columns, x, y);
  }

  /// The names of the kernels that compute this convolution: forward, and backward to the input and to the
  /// kernel.
  virtual std::string describe_conv2d(conv_geometry const& g, int batch) = 0;

  /// The name of the product that computes this dense layer forward.
  virtual std::string describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) = 0;

  // ---- Windows ----

  /// The greatest element under each window; places outside the sample do not count. A NaN propagates.
  virtual void max_pool_forward(pool_geometry const& g, int batch, in x, out y) = 0;

  /// Passes the gradient to the first of equal greatest elements.
  virtual void max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) = 0;

  /// The mean of the elements under each window that lie inside the sample (TensorFlow's rule at the border).
  virtual void average_pool_forward(pool_geometry const& g, int batch, in x, out y) = 0;
  virtual void average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) = 0;

  // ---- Normalisation ----

  /// y = f(gamma · (x − mean) / √(variance + epsilon) + beta + more). An empty gamma stands for ones. Mean
  /// and (biased) variance of a channel are those of all its positions in the batch. `more` may be empty; it
  /// is not allowed with windows or a `curved` activation. `c` gives the activation and the pooling that
  /// follow. Updates the running values: running ← momentum · running + (1 − momentum) · this batch's. Writes
  /// 2 · channels numbers to `kept`: mean and 1 / √(variance + epsilon).
  virtual void batch_norm_train(norm_chain const& c, int batch, T momentum, T epsilon, in x, in gamma,
                                in beta, in more, out running_mean, out running_variance, out y,
                                out kept) = 0;

  /// The same with the running values, which it does not change.
  virtual void batch_norm_evaluate(norm_chain const& c, int batch, T epsilon, in x, in gamma, in beta,
                                   in more, in running_mean, in running_variance, out y, out kept) = 0;

  /// Computes y again, from what either of them wrote to `kept`, without `more`.
  virtual void batch_norm_recompute(norm_chain const& c, int batch, in x, in gamma, in beta, in kept,
                                    out y) = 0;

  /// Gradients after `batch_norm_train` (`through` the batch's statistics) or `batch_norm_evaluate` (where
  /// they are constants). An empty `dx` is not computed; dgamma is empty if gamma is. On the processor dx may
  /// be x if the chain has no window.
  virtual void batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma, in beta,
                                   in dy, in kept, out dx, out dgamma, out dbeta) = 0;

  // ---- Element by element ----

  // `narrow` describes x and dx (`in`), y and dy (`out`).

  /// y = f(x); y may be x if `f` is scale.
  virtual void elementwise_forward(elementwise f, T parameter, in x, out y, bfloat16_io narrow = {}) = 0;

  /// dx = dy · f'; dx may be dy. `y` is the output or the input, as `elementwise` says.
  virtual void elementwise_backward(elementwise f, T parameter, in y, in dy, out dx,
                                    bfloat16_io narrow = {}) = 0;

  /// y = 0 where the stream's uniform number for the element is below `rate`, and x / (1 − rate) elsewhere.
  /// `mask` receives one byte per element, for `dropout_backward`.
  virtual void dropout_forward(T rate, random_stream const& random, in x, out y, std::span<std::byte> mask,
                               bfloat16_io narrow = {}) = 0;
  virtual void dropout_backward(T rate, std::span<std::byte const> mask, in dy, out dx,
                                bfloat16_io narrow = {}) = 0;

  virtual void copy(in x, out y, bfloat16_io narrow = {}) = 0;

  /// y = f(a + b); y may be a or b. `narrow.in` says how b lies in memory, `narrow.out` how a and y do.
  virtual void add(activation f, in a, in b, out y, bfloat16_io narrow = {}) = 0;

  /// y = a · b; y may be a or b. Not every backend supports it.
  virtual void multiply_elements(in a, in b, out y) { lack("a product of results", a, b, y); }

  /// y = a + b where x > 0, and 0 elsewhere; y may be a or b.
  virtual void add_masked(in a, in b, in x, out y, bfloat16_io narrow = {}) = 0;

  /// Packs every element of x as a bfloat16 (core/bfloat16.hpp) at the start of `to`, two bytes each; and
  /// back.
  virtual void store_bfloat16(in x, std::span<std::byte> to) = 0;
  virtual void load_bfloat16(std::span<std::byte const> from, out y) = 0;

  /// Copies a matrix of `rows` × `columns`. Its rows begin at elements `x_first` and `y_first`, with strides
  /// of `x_stride` and `y_stride` elements. A concatenation uses it to write and to read the channels of one
  /// branch.
  virtual void copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first,
                            std::size_t x_stride, out y, std::size_t y_first, std::size_t y_stride) = 0;

  // ---- Tables: ids are float32 whatever the precision ----

  /// Row i of y is the table's row with id i. An id without a row causes an error, or a row of NaN.
  virtual void embedding_forward(embedding_geometry const& g, int batch, in ids, in table, out y) = 0;

  /// dtable = for each id the sum of its rows of dy, in batch order for any number of threads, and zeros
  /// elsewhere, or is added to where the geometry says so. dx, unless it is empty, becomes zeros. Invalid ids
  /// are ignored.
  virtual void embedding_backward(embedding_geometry const& g, int batch, in ids, in dy, out dx,
                                  out dtable) = 0;

  /// y = Σ_{i<j} ⟨v_i, v_j⟩ of each sample, over its `rows` rows v of `width` numbers, computed as ½ Σ_k
  /// ((Σ_i v_ik)² − Σ_i v_ik²).
  virtual void factorization_forward(std::size_t samples, std::size_t rows, std::size_t width, in x,
                                     out y) = 0;

  /// dv_i = dy · Σ_{j≠i} v_j
  virtual void factorization_backward(std::size_t samples, std::size_t rows, std::size_t width, in x, in dy,
                                      out dx) = 0;

  // ---- Rows ----

  /// y = exp(x) / Σ exp(x) along each row, without overflow.
  virtual void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) = 0;
  virtual void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) = 0;

  /// y = x − log Σ exp(x) along each row, without overflow; and dx = dy − exp(y) · Σ dy.
  virtual void log_softmax_forward(std::size_t rows, std::size_t classes, in x, out y) = 0;
  virtual void log_softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) = 0;

  // ---- Words and time ----
  // A backend that does not support one of these throws edl::error: layers that need it are not portable.

  /// y = softmax(q · k / √width) · v for each head, without storing a matrix of places × places. If the
  /// geometry has rotary embeddings, the call rotates the queries and keys of `qkv` in place. `kept` receives
  /// the logarithm of the sum of exponentials, (batch, heads, places).
  virtual void attention_forward(attention_geometry const& g, int batch, out qkv, out y, out kept) {
    lack("attention", g, batch, qkv, y, kept);
  }
  /// `qkv` is as the forward pass left it. The call overwrites it with the gradient of the forward pass's
  /// input.
  virtual void attention_backward(attention_geometry const& g, int batch, in y, in dy, in kept, out qkv) {
    lack("attention", g, batch, y, dy, kept, qkv);
  }

  /// The same from queries (batch, places, channels) to keys and values (batch, keys, 2 · channels). Of
  /// `mask` only the dropout applies.
  virtual void cross_attention_forward(cross_attention_geometry const& g, int batch,
                                       attention_mask const& mask, in queries, in keys_values, out y,
                                       out kept) {
    lack("attention", g, batch, mask, queries, keys_values, y, kept);
  }
  virtual void cross_attention_backward(cross_attention_geometry const& g, int batch,
                                        attention_mask const& mask, in queries, in keys_values, in y, in dy,
                                        in kept, out dqueries, out dkeys_values) {
    lack("attention", g, batch, mask, queries, keys_values, y, dy, kept, dqueries, dkeys_values);
  }

  /// Causal self-attention of single places of sequences, each to all of its sequence up to itself. On entry
  /// `qkv` (rows, 3 · channels) is as for `attention_forward`. Its keys and values go to `cache` (sequences,
  /// heads / g.group, 2, g.places, width), which has those of the sequence's earlier places: from earlier
  /// calls, or from other rows of this one. Throws error for a place outside of the cache.
  virtual void cached_attention_forward(attention_geometry const& g, std::span<sequence_place const> rows,
                                        out qkv, out cache, out y) {
    lack("generation", g, rows, qkv, cache, y);
  }

  /// On entry `gates` (batch, steps, gates · units) holds what the inputs contribute; on return, the gates.
  /// `kernel` (units, gates · units) and `bias` (gru only) compute the contribution of the previous step's
  /// result. `states` (batch, steps, units) receives an lstm's cells, or the product's contribution to a
  /// gru's candidate.
  virtual void recurrent_forward(recurrent_geometry const& g, int batch, in kernel, in bias, out gates,
                                 out states, out y) {
    lack("recurrence", g, batch, kernel, bias, gates, states, y);
  }
  /// `gates` are those of the forward pass; the call overwrites them with the gradient of the forward pass's
  /// input. `drecurrent` receives the gradient of the product's result. For an lstm both gradients are the
  /// same, and `drecurrent` is empty.
  virtual void recurrent_backward(recurrent_geometry const& g, int batch, in kernel, in states, in y, in dy,
                                  out gates, out drecurrent) {
    lack("recurrence", g, batch, kernel, states, y, dy, gates, drecurrent);
  }

  // ---- Places that are padding ----
  // A padding place contributes nothing to other places. Its result and its gradient are written as zeros.

  /// The same as without a mask. The order within `kept` is the backend's own.
  virtual void masked_attention_forward(attention_geometry const& g, int batch, attention_mask const& mask,
                                        out qkv, out y, out kept) {
    lack("attention with padding or dropout", g, batch, mask, qkv, y, kept);
  }
  virtual void masked_attention_backward(attention_geometry const& g, int batch, attention_mask const& mask,
                                         in y, in dy, in kept, out qkv) {
    lack("attention with padding or dropout", g, batch, mask, y, dy, kept, qkv);
  }

  /// As `recurrent_forward` and `recurrent_backward`, from one valid place to the next.
  virtual void masked_recurrent_forward(recurrent_geometry const& g, int batch, kept_places const& places,
                                        in kernel, in bias, out gates, out states, out y) {
    lack("recurrence with padding", g, batch, places, kernel, bias, gates, states, y);
  }
  virtual void masked_recurrent_backward(recurrent_geometry const& g, int batch, kept_places const& places,
                                         in kernel, in states, in y, in dy, out gates, out drecurrent) {
    lack("recurrence with padding", g, batch, places, kernel, states, y, dy, gates, drecurrent);
  }

  /// The mean of each channel over the valid places of a sample.
  virtual void masked_average_pool_forward(kept_places const& places, std::size_t channels, in x, out y) {
    lack("pooling with padding", places, channels, x, y);
  }
  virtual void masked_average_pool_backward(kept_places const& places, std::size_t channels, in dy, out dx) {
    lack("pooling with padding", places, channels, dy, dx);
  }

  /// The greatest element of each channel over the valid places of a sample. The gradient goes to the first
  /// of equal elements.
  virtual void masked_max_pool_forward(kept_places const& places, std::size_t channels, in x, out y) {
    lack("pooling with padding", places, channels, x, y);
  }
  virtual void masked_max_pool_backward(kept_places const& places, std::size_t channels, in x, in y, in dy,
                                        out dx) {
    lack("pooling with padding", places, channels, x, y, dy, dx);
  }

 private:
  template <class... Unused>
  [[noreturn]] static void lack(char const* what, Unused const&...) {
    throw error(std::string(what) + " is not computed by this device: use the processor (--device=cpu)");
  }
};

/// The backend in single precision, in which programs train.
using backend = basic_backend<float>;

}  // namespace edl
