// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/device/activation.hpp"
#include "edl/device/geometry.hpp"

namespace edl {

/// Arguments of operations. The scalar is deduced from the device alone, so that a span passes for a view.
template <class T>
using reads = std::type_identity_t<view<T>>;
template <class T>
using writes = std::type_identity_t<std::span<T>>;

/// What computes. An object of it is a stream of work with its own workspace, used by one thread at a time.
/// The operations are free functions that argument-dependent lookup finds; all extents are run-time values,
/// samples are channels last, outputs are overwritten unless a name says otherwise, and outputs do not
/// overlap inputs.
template <class D>
concept device = requires(D& d, conv_geometry const& conv, pool_geometry const& pool, std::size_t n,
                          int batch, typename D::scalar s, reads<typename D::scalar> in,
                          writes<typename D::scalar> out, random_stream const& random,
                          std::span<std::byte> mask, std::span<std::byte const> kept, activation f,
                          norm_chain const& norm, embedding_geometry const& table) {
  typename D::scalar;
  typename D::options;  // D(options): what of the machine it may use
  typename D::buffer;   // memory the device computes on: .span(), movable
  // x, kernel, bias (may be empty) → y
  conv2d_forward(d, conv, batch, f, in, in, in, out);
  // x, kernel, dy before the activation → dx, dkernel, dbias (each may be empty)
  conv2d_backward(d, conv, batch, in, in, in, out, out, out);
  // rows, inputs, outputs; x, kernel, bias (may be empty) → y
  dense_forward(d, n, n, n, f, in, in, in, out);
  // x, kernel, dy before the activation → dx (may be empty), dkernel, dbias (may be empty)
  dense_backward(d, n, n, n, in, in, in, out, out, out);
  max_pool_forward(d, pool, batch, in, out);
  max_pool_backward(d, pool, batch, in, in, in, out);  // x, y, dy → dx
  average_pool_forward(d, pool, batch, in, out);
  average_pool_backward(d, pool, batch, in, out);
  relu_forward(d, in, out);
  relu_backward(d, in, in, out);  // y, dy → dx, as for all activations; dx may be dy
  leaky_relu_forward(d, s, in, out);
  leaky_relu_backward(d, s, in, in, out);
  sigmoid_forward(d, in, out);
  sigmoid_backward(d, in, in, out);
  tanh_forward(d, in, out);
  tanh_backward(d, in, in, out);
  gelu_forward(d, in, out);
  gelu_backward(d, in, in, out);      // x, dy → dx
  multiply(d, s, in, out);            // y = s · x; y may be x
  softmax_forward(d, n, n, in, out);  // rows, classes
  softmax_backward(d, n, n, in, in, out);
  // momentum, epsilon; x, gamma (may be empty: ones), beta, what is added (may be empty) → running mean,
  // running variance, y, kept
  batch_norm_train(d, norm, batch, s, s, in, in, in, in, out, out, out, out);
  // epsilon; x, gamma, beta, what is added (may be empty), running mean, running variance → y, kept
  batch_norm_evaluate(d, norm, batch, s, in, in, in, in, in, in, out, out);
  batch_norm_again(d, norm, batch, in, in, in, in, out);  // x, gamma, beta, kept → y
  // through the batch's statistics?; x, gamma, beta, dy, kept → dx (may be empty), dgamma (like gamma),
  // dbeta
  batch_norm_backward(d, norm, batch, true, in, in, in, in, in, out, out, out);
  embedding_forward(d, table, batch, in, in, out);        // ids, table → y: the rows that they name
  embedding_backward(d, table, batch, in, in, out, out);  // ids, dy → dx (may be empty): zeros, dtable
  dropout_forward(d, s, random, in, out, mask);
  dropout_backward(d, s, kept, in, out);
  copy(d, in, out);
  add(d, f, in, in, out);                      // y = f(a + b); y may be either
  add_masked(d, in, in, in, out);              // y = x > 0 ? a + b : 0; a, b, x → y; y may be a or b
  halve(d, in, mask);                          // x → bfloat16
  restore(d, kept, out);                       // and back
  copy_columns(d, n, n, in, n, n, out, n, n);  // rows, columns; x, its first and its stride → y, likewise
  { allocate(d, n) } -> std::same_as<typename D::buffer>;  // zeroed
  upload(d, in, out);                                      // variables from host memory
  download(d, in, out);                                    // and to it
  bind_parameters(d, in);                                  // the variables that will be factors of products
  finish(d);                                               // waits until all is done
  { in_host_memory(d) } -> std::same_as<bool>;             // whether the host may look into its buffers
};

}  // namespace edl
