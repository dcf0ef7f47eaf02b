// SPDX-License-Identifier: Apache-2.0
// What the engine does by one call of a kernel, or of a library.
#include <algorithm>

#include "edl/device/cuda/library/engine.hpp"

namespace edl::cuda_library {

namespace kernels = cuda_kernels;

namespace {

float* data(accelerator::out s) { return s.empty() ? nullptr : s.data(); }
float const* data(accelerator::in s) { return s.empty() ? nullptr : s.data(); }

}  // namespace

void engine::store(in from, out to) { kernels::store(queue_, from.data(), to.data(), from.size()); }
void engine::load(in from, out to) { kernels::load(queue_, from.data(), to.data(), to.size()); }

// ---- Products ----

void engine::conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel, in bias,
                            out y) {
  products_->conv2d_forward(g, batch, f, x.data(), kernel.data(), data(bias), y.data());
}

void engine::conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy, out dx, out dkernel,
                             out dbias) {
  products_->conv2d_backward(g, batch, x.data(), kernel.data(), dy.data(), data(dx), data(dkernel),
                             data(dbias));
}

void engine::dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, in x,
                           in kernel, in bias, out y) {
  products_->dense_forward(rows, inputs, outputs, f, x.data(), kernel.data(), data(bias), y.data());
}

void engine::dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x, in kernel, in dy,
                            out dx, out dkernel, out dbias) {
  products_->dense_backward(rows, inputs, outputs, x.data(), kernel.data(), dy.data(), data(dx),
                            dkernel.data(), data(dbias));
}

std::string engine::describe_conv2d(conv_geometry const& g, int batch) {
  return products_->describe_conv2d(g, batch);
}

std::string engine::describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) {
  return products_->describe_dense(rows, inputs, outputs);
}

// ---- Windows ----

void engine::max_pool_forward(pool_geometry const& g, int batch, in x, out y) {
  kernels::max_pool_forward(queue_, g, batch, x.data(), y.data());
}

void engine::max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) {
  kernels::max_pool_backward(queue_, g, batch, x.data(), y.data(), dy.data(), dx.data());
}

void engine::average_pool_forward(pool_geometry const& g, int batch, in x, out y) {
  kernels::average_pool_forward(queue_, g, batch, x.data(), y.data());
}

void engine::average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) {
  kernels::average_pool_backward(queue_, g, batch, dy.data(), dx.data());
}

// ---- Normalisation ----

void engine::batch_norm_train(norm_chain const& c, int batch, float momentum, float epsilon, in x, in gamma,
                              in beta, in more, out running_mean, out running_variance, out y, out kept) {
  kernels::batch_norm_train(queue_, c, batch, momentum, epsilon, x.data(), data(gamma), beta.data(),
                            data(more), running_mean.data(), running_variance.data(), y.data(), kept.data(),
                            scratch(kernels::batch_norm_scratch(queue_, c, batch)));
}

void engine::batch_norm_evaluate(norm_chain const& c, int batch, float epsilon, in x, in gamma, in beta,
                                 in more, in running_mean, in running_variance, out y, out kept) {
  kernels::batch_norm_evaluate(queue_, c, batch, epsilon, x.data(), data(gamma), beta.data(), data(more),
                               running_mean.data(), running_variance.data(), y.data(), kept.data());
}

void engine::batch_norm_again(norm_chain const& c, int batch, in x, in gamma, in beta, in kept, out y) {
  kernels::batch_norm_again(queue_, c, batch, x.data(), data(gamma), beta.data(), kept.data(), y.data());
}

void engine::batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma, in beta, in dy,
                                 in kept, out dx, out dgamma, out dbeta) {
  kernels::batch_norm_backward(queue_, c, batch, through, x.data(), data(gamma), beta.data(), dy.data(),
                               kept.data(), data(dx), data(dgamma), dbeta.data(),
                               scratch(kernels::batch_norm_scratch(queue_, c, batch)));
}

// ---- Element by element ----

void engine::elementwise_forward(elementwise f, float parameter, in x, out y) {
  kernels::forward(queue_, f, parameter, x.data(), y.data(), y.size());
}

void engine::elementwise_backward(elementwise f, float parameter, in y, in dy, out dx) {
  kernels::backward(queue_, f, parameter, y.data(), dy.data(), dx.data(), dx.size());
}

void engine::dropout_forward(float rate, random_stream const& random, in x, out y,
                             std::span<std::byte> mask) {
  kernels::dropout_forward(queue_, rate, random, x.data(), y.data(), mask.data(), y.size());
}

void engine::dropout_backward(float rate, std::span<std::byte const> mask, in dy, out dx) {
  kernels::dropout_backward(queue_, rate, mask.data(), dy.data(), dx.data(), dx.size());
}

void engine::copy(in x, out y) { kernels::copy(queue_, x.data(), y.data(), y.size()); }

void engine::add(activation f, in a, in b, out y) {
  kernels::add(queue_, f, a.data(), b.data(), y.data(), y.size());
}

void engine::add_masked(in a, in b, in x, out y) {
  kernels::add_masked(queue_, a.data(), b.data(), x.data(), y.data(), y.size());
}

void engine::halve(in x, std::span<std::byte> to) { kernels::halve(queue_, x.data(), to.data(), x.size()); }

void engine::restore(std::span<std::byte const> from, out y) {
  kernels::restore(queue_, from.data(), y.data(), y.size());
}

void engine::copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first,
                          std::size_t x_stride, out y, std::size_t y_first, std::size_t y_stride) {
  kernels::copy_columns(queue_, rows, columns, x.data(), x_first, x_stride, y.data(), y_first, y_stride);
}

// ---- Tables ----

void engine::embedding_forward(embedding_geometry const& g, int, in ids, in table, out y) {
  kernels::embedding_forward(queue_, g, ids.size(), ids.data(), table.data(), y.data());
}

void engine::embedding_backward(embedding_geometry const& g, int, in ids, in dy, out dx, out dtable) {
  kernels::embedding_backward(queue_, g, ids.size(), ids.data(), dy.data(), data(dx), dtable.data(),
                              scratch(kernels::embedding_scratch(g, ids.size())));
}

// ---- Samples ----

void engine::show(shape s, std::size_t batch, in from, std::uint32_t const* rows, placement const* how,
                  bool exact, out y) {
  auto q = queue_;
  if (exact) q.half = false;
  kernels::show(q, s, batch, from.data(), rows, how, y.data());
}

void engine::scatter_rows(std::size_t batch, std::size_t width, in from, std::uint32_t const* rows, out to) {
  kernels::scatter_rows(queue_, batch, width, from.data(), rows, to.data());
}

// ---- Rows ----

void engine::softmax_forward(std::size_t rows, std::size_t classes, in x, out y) {
  kernels::softmax_forward(queue_, rows, classes, x.data(), y.data());
}

void engine::softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) {
  kernels::softmax_backward(queue_, rows, classes, y.data(), dy.data(), dx.data());
}

void engine::softmax_cross_entropy(std::size_t rows, std::size_t classes, float label_smoothing, in outputs,
                                   std::int32_t const* labels, out gradients, out loss) {
  kernels::softmax_cross_entropy(queue_, rows, classes, label_smoothing, outputs.data(), labels,
                                 data(gradients), loss.data(),
                                 scratch(kernels::loss_scratch(queue_, rows, classes)));
}

void engine::sigmoid_cross_entropy(std::size_t rows, std::size_t columns, in outputs, in labels,
                                   out gradients, out loss) {
  kernels::sigmoid_cross_entropy(queue_, rows, columns, outputs.data(), labels.data(), data(gradients),
                                 loss.data(), scratch(kernels::loss_scratch(queue_, rows, columns)));
}

void engine::mean_squared_error(std::size_t rows, std::size_t columns, in outputs, in labels, out gradients,
                                out loss) {
  kernels::mean_squared_error(queue_, rows, columns, outputs.data(), labels.data(), data(gradients),
                              loss.data(), scratch(kernels::loss_scratch(queue_, rows, columns)));
}

// ---- Optimisers ----

void engine::sgd(out weights, in gradients, out velocity, float rate, float momentum, float weight_decay,
                 bool nesterov) {
  kernels::sgd(queue_, weights.size(), weights.data(), gradients.data(), data(velocity),
               rounded(weights.data()), rate, momentum, weight_decay, nesterov);
}

void engine::adam(out weights, in gradients, out m, out v, out largest, float alpha, float keep, float beta_1,
                  float beta_2, float epsilon) {
  kernels::adam(queue_, weights.size(), weights.data(), gradients.data(), m.data(), v.data(), data(largest),
                rounded(weights.data()), alpha, keep, beta_1, beta_2, epsilon);
}

void engine::adagrad(out weights, in gradients, out accumulator, float rate, float keep, float epsilon) {
  kernels::adagrad(queue_, weights.size(), weights.data(), gradients.data(), accumulator.data(),
                   rounded(weights.data()), rate, keep, epsilon);
}

void engine::look_back(out weights, out slow, float keep) {
  kernels::look_back(queue_, weights.size(), weights.data(), slow.data(), rounded(weights.data()), keep);
}

}  // namespace edl::cuda_library
