// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/compute/device/cuda/library/products.hpp"

namespace edl::cuda_library {

/// What a GPU does by one call of a kernel, or of a library.
class operations : public accelerator {
 public:
  std::vector<memory_traffic> take_traffic() override { return std::exchange(traffic_, {}); }

  void store(in from, out to) override {
    count("store", {.activations = from.size(), .floats = from.size()});
    cuda_kernels::store(queue_, from.data(), to.data(), from.size());
  }
  void load(in from, out to) override {
    count("load", {.activations = to.size(), .floats = to.size()});
    cuda_kernels::load(queue_, from.data(), to.data(), to.size());
  }

  // ---- Products ----

  void conv2d_forward(conv_geometry const& g, int batch, activation f, in x, in kernel, in bias,
                      out y) override {
    count("conv2d forward", {.activations = x.size() + kernel.size() + y.size(), .floats = bias.size()});
    products_->conv2d_forward(g, batch, f, x.data(), kernel.data(), pointer(bias), y.data());
  }

  void conv2d_forward_to_norm(conv_geometry const& g, int batch, in x, in kernel, in bias, out y) override {
    count("conv2d forward", {.activations = x.size() + kernel.size() + y.size(), .floats = bias.size()});
    moments_ = {y.data(),
                products_->conv2d_moments(g, batch, x.data(), kernel.data(), pointer(bias), y.data())};
  }

  void conv2d_backward(conv_geometry const& g, int batch, in x, in kernel, in dy, out dx, out dkernel,
                       out dbias) override {
    conv2d_backward_onto(g, batch, x, kernel, dy, {}, false, false, dx, dkernel, dbias);
  }

  void conv2d_backward_onto(conv_geometry const& g, int batch, in x, in kernel, in dy, in more, bool masked,
                            bool, out dx, out dkernel, out dbias) override {
    if (!dkernel.empty())
      count("conv2d to kernel", {.activations = x.size() + dy.size(), .floats = dkernel.size()});
    if (!dbias.empty()) count("conv2d to bias", {.activations = dy.size(), .floats = dbias.size()});
    bool const at_once = products_->conv2d_backward(
        g, batch, x.data(), kernel.data(), dy.data(), pointer(dx), pointer(dkernel), pointer(dbias),
        {pointer(more), masked && !more.empty() ? x.data() : nullptr});
    if (!dx.empty())
      count("conv2d to image",
            {.activations = dy.size() + kernel.size() + more.size() + (masked ? x.size() : 0) + dx.size(),
             .again = at_once ? 0 : 2 * dx.size()});
  }

  void dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f, in x, in kernel,
                     in bias, out y, bool) override {
    count("dense forward", {.activations = x.size() + kernel.size() + y.size(), .floats = bias.size()});
    products_->dense_forward(rows, inputs, outputs, f, x.data(), kernel.data(), pointer(bias), y.data());
  }

  void dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, in x, in kernel, in dy,
                      out dx, out dkernel, out dbias, bool) override {
    if (!dkernel.empty())
      count("dense to kernel",
            {.activations = x.size() + dy.size(), .floats = dkernel.size() + dbias.size()});
    if (!dx.empty()) count("dense to input", {.activations = dy.size() + kernel.size() + dx.size()});
    products_->dense_backward(rows, inputs, outputs, x.data(), kernel.data(), dy.data(), pointer(dx),
                              pointer(dkernel), pointer(dbias));
  }

  std::string describe_conv2d(conv_geometry const& g, int batch) override {
    return products_->describe_conv2d(g, batch);
  }

  std::string describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) override {
    return products_->describe_dense(rows, inputs, outputs);
  }

  // ---- Windows ----

  void max_pool_forward(pool_geometry const& g, int batch, in x, out y) override {
    count("max_pool forward", {.activations = x.size() + y.size()});
    cuda_kernels::max_pool_forward(queue_, g, batch, x.data(), y.data());
  }

  void max_pool_backward(pool_geometry const& g, int batch, in x, in y, in dy, out dx) override {
    count("max_pool backward", {.activations = x.size() + y.size() + dy.size() + dx.size()});
    cuda_kernels::max_pool_backward(queue_, g, batch, x.data(), y.data(), dy.data(), dx.data());
  }

  void average_pool_forward(pool_geometry const& g, int batch, in x, out y) override {
    count("average_pool forward", {.activations = x.size() + y.size()});
    cuda_kernels::average_pool_forward(queue_, g, batch, x.data(), y.data());
  }

  void average_pool_backward(pool_geometry const& g, int batch, in dy, out dx) override {
    count("average_pool backward", {.activations = dy.size() + dx.size()});
    cuda_kernels::average_pool_backward(queue_, g, batch, dy.data(), dx.data());
  }

  // ---- Normalisation ----

  void batch_norm_train(norm_chain const& c, int batch, float momentum, float epsilon, in x, in gamma,
                        in beta, in more, out running_mean, out running_variance, out y, out kept) override {
    // Not what another layer has left: only that which wrote x.
    auto known = std::exchange(moments_, {});
    if (known.of != x.data()) known = {};
    count("batch_norm forward",
          {.activations = x.size() + more.size() + y.size(), .again = known.parts.counted ? 0 : x.size()});
    cuda_kernels::batch_norm_train(queue_, c, batch, momentum, epsilon, x.data(), pointer(gamma), beta.data(),
                                   pointer(more), running_mean.data(), running_variance.data(), y.data(),
                                   kept.data(), known.parts,
                                   scratch(cuda_kernels::batch_norm_scratch(queue_, c, batch)));
  }

  void batch_norm_evaluate(norm_chain const& c, int batch, float epsilon, in x, in gamma, in beta, in more,
                           in running_mean, in running_variance, out y, out kept) override {
    count("batch_norm forward", {.activations = x.size() + more.size() + y.size()});
    cuda_kernels::batch_norm_evaluate(queue_, c, batch, epsilon, x.data(), pointer(gamma), beta.data(),
                                      pointer(more), running_mean.data(), running_variance.data(), y.data(),
                                      kept.data());
  }

  void batch_norm_recompute(norm_chain const& c, int batch, in x, in gamma, in beta, in kept,
                            out y) override {
    count("batch_norm again", {.activations = x.size() + y.size()});
    cuda_kernels::batch_norm_recompute(queue_, c, batch, x.data(), pointer(gamma), beta.data(), kept.data(),
                                       y.data());
  }

  void batch_norm_backward(norm_chain const& c, int batch, bool through, in x, in gamma, in beta, in dy,
                           in kept, out dx, out dgamma, out dbeta) override {
    std::size_t const read = x.size() + dy.size();
    count("batch_norm backward", {.activations = read + dx.size(), .again = dx.empty() ? 0 : read});
    cuda_kernels::batch_norm_backward(queue_, c, batch, through, x.data(), pointer(gamma), beta.data(),
                                      dy.data(), kept.data(), pointer(dx), pointer(dgamma), dbeta.data(),
                                      scratch(cuda_kernels::batch_norm_scratch(queue_, c, batch)));
  }

  // ---- Element by element ----

  void elementwise_forward(elementwise f, float parameter, in x, out y, bfloat16_io) override {
    count("elementwise forward", {.activations = x.size() + y.size()});
    cuda_kernels::forward(queue_, f, parameter, x.data(), y.data(), y.size());
  }

  void elementwise_backward(elementwise f, float parameter, in y, in dy, out dx, bfloat16_io) override {
    count("elementwise backward", {.activations = y.size() + dy.size() + dx.size()});
    cuda_kernels::backward(queue_, f, parameter, y.data(), dy.data(), dx.data(), dx.size());
  }

  void dropout_forward(float rate, random_stream const& random, in x, out y, std::span<std::byte> mask,
                       bfloat16_io) override {
    count("dropout forward", {.activations = x.size() + y.size(), .bytes = mask.size()});
    cuda_kernels::dropout_forward(queue_, rate, random, x.data(), y.data(), mask.data(), y.size());
  }

  void dropout_backward(float rate, std::span<std::byte const> mask, in dy, out dx, bfloat16_io) override {
    count("dropout backward", {.activations = dy.size() + dx.size(), .bytes = mask.size()});
    cuda_kernels::dropout_backward(queue_, rate, mask.data(), dy.data(), dx.data(), dx.size());
  }

  void copy(in x, out y, bfloat16_io) override {
    count("copy", {.activations = x.size() + y.size()});
    cuda_kernels::copy(queue_, x.data(), y.data(), y.size());
  }

  void add(activation f, in a, in b, out y, bfloat16_io) override {
    count("add", {.activations = a.size() + b.size() + y.size()});
    cuda_kernels::add(queue_, f, a.data(), b.data(), y.data(), y.size());
  }

  void add_masked(in a, in b, in x, out y, bfloat16_io) override {
    count("add_masked", {.activations = a.size() + b.size() + x.size() + y.size()});
    cuda_kernels::add_masked(queue_, a.data(), b.data(), x.data(), y.data(), y.size());
  }

  void store_bfloat16(in x, std::span<std::byte> to) override {
    count("copy", {.activations = x.size(), .bytes = 2 * x.size()});
    cuda_kernels::store_bfloat16(queue_, x.data(), to.data(), x.size());
  }

  void load_bfloat16(std::span<std::byte const> from, out y) override {
    count("copy", {.activations = y.size(), .bytes = 2 * y.size()});
    cuda_kernels::load_bfloat16(queue_, from.data(), y.data(), y.size());
  }

  void copy_columns(std::size_t rows, std::size_t columns, in x, std::size_t x_first, std::size_t x_stride,
                    out y, std::size_t y_first, std::size_t y_stride) override {
    count("copy", {.activations = 2 * rows * columns});
    cuda_kernels::copy_columns(queue_, rows, columns, x.data(), x_first, x_stride, y.data(), y_first,
                               y_stride);
  }

  // ---- Tables ----

  void embedding_forward(embedding_geometry const& g, int, in ids, in table, out y) override {
    count("embedding forward", {.activations = y.size(), .floats = ids.size() + y.size()});
    cuda_kernels::embedding_forward(queue_, g, ids.size(), ids.data(), table.data(), y.data());
  }

  void embedding_backward(embedding_geometry const& g, int, in ids, in dy, out dx, out dtable) override {
    count("embedding backward", {.activations = dy.size() + dx.size(), .floats = ids.size() + dtable.size()});
    cuda_kernels::embedding_backward(queue_, g, ids.size(), ids.data(), dy.data(), pointer(dx), dtable.data(),
                                     scratch(cuda_kernels::embedding_scratch(g, ids.size())));
  }

  void factorization_forward(std::size_t samples, std::size_t rows, std::size_t width, in x, out y) override {
    count("factorization forward", {.activations = x.size() + y.size()});
    cuda_kernels::factorization_forward(queue_, samples, rows, width, x.data(), y.data());
  }

  void factorization_backward(std::size_t samples, std::size_t rows, std::size_t width, in x, in dy,
                              out dx) override {
    count("factorization backward", {.activations = x.size() + dy.size() + dx.size(), .again = x.size()});
    cuda_kernels::factorization_backward(queue_, samples, rows, width, x.data(), dy.data(), dx.data());
  }

  // ---- Samples ----

  void show(shape s, std::size_t batch, in from, std::uint32_t const* rows, placement const* how, bool exact,
            out y) override {
    count("show", {.activations = exact ? 0 : y.size(), .floats = y.size() * (exact ? 2 : 1)});
    auto q = queue_;
    if (exact) q.half = false;
    cuda_kernels::show(q, s, batch, from.data(), rows, how, y.data());
  }

  void scatter_rows(std::size_t batch, std::size_t width, in from, std::uint32_t const* rows,
                    out to) override {
    count("scatter_rows", {.floats = 2 * batch * width});
    cuda_kernels::scatter_rows(queue_, batch, width, from.data(), rows, to.data());
  }

  void add_rows(row_sums const& of, in x, bool exact, out to) override {
    std::size_t const read = of.terms * of.width;
    count("add_rows",
          {.activations = exact ? 0 : read, .floats = of.results * of.width + (exact ? read : 0)});
    auto q = queue_;
    if (exact) q.half = false;
    cuda_kernels::add_rows(q, of, x.data(), to.data());
  }

  // ---- Rows ----

  void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) override {
    count("softmax forward", {.activations = x.size() + y.size()});
    cuda_kernels::softmax_forward(queue_, rows, classes, x.data(), y.data());
  }

  void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) override {
    count("softmax backward", {.activations = y.size() + dy.size() + dx.size()});
    cuda_kernels::softmax_backward(queue_, rows, classes, y.data(), dy.data(), dx.data());
  }

  void log_softmax_forward(std::size_t rows, std::size_t classes, in x, out y) override {
    count("log_softmax forward", {.activations = x.size() + y.size()});
    cuda_kernels::log_softmax_forward(queue_, rows, classes, x.data(), y.data());
  }

  void log_softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) override {
    count("log_softmax backward", {.activations = y.size() + dy.size() + dx.size()});
    cuda_kernels::log_softmax_backward(queue_, rows, classes, y.data(), dy.data(), dx.data());
  }

  void softmax_cross_entropy(std::size_t rows, std::size_t classes, float label_smoothing, in outputs,
                             std::int32_t const* labels, out gradients, out loss) override {
    count("loss", {.activations = outputs.size() + gradients.size(), .floats = rows});
    cuda_kernels::softmax_cross_entropy(queue_, rows, classes, label_smoothing, outputs.data(), labels,
                                        pointer(gradients), loss.data(),
                                        scratch(cuda_kernels::loss_scratch(queue_, rows, classes)));
  }

  void sigmoid_cross_entropy(std::size_t rows, std::size_t columns, float label_smoothing, in outputs,
                             in labels, out gradients, out loss) override {
    count("loss", {.activations = outputs.size() + gradients.size(), .floats = labels.size()});
    cuda_kernels::sigmoid_cross_entropy(queue_, rows, columns, label_smoothing, outputs.data(), labels.data(),
                                        pointer(gradients), loss.data(),
                                        scratch(cuda_kernels::loss_scratch(queue_, rows, columns)));
  }

  void mean_squared_error(std::size_t rows, std::size_t columns, in outputs, in labels, out gradients,
                          out loss) override {
    count("loss", {.activations = outputs.size() + gradients.size(), .floats = labels.size()});
    cuda_kernels::mean_squared_error(queue_, rows, columns, outputs.data(), labels.data(), pointer(gradients),
                                     loss.data(), scratch(cuda_kernels::loss_scratch(queue_, rows, columns)));
  }

  // ---- Optimisers ----

  void sgd(out weights, in gradients, out velocity, float rate, float momentum, float weight_decay,
           bool nesterov) override {
    step_of(weights, 2 * velocity.size());
    cuda_kernels::sgd(queue_, weights.size(), weights.data(), gradients.data(), pointer(velocity),
                      rounded(weights.data()), rate, momentum, weight_decay, nesterov);
  }

  void adam(out weights, in gradients, out m, out v, out largest, float alpha, float keep, float beta_1,
            float beta_2, float epsilon) override {
    step_of(weights, 2 * (m.size() + v.size() + largest.size()));
    cuda_kernels::adam(queue_, weights.size(), weights.data(), gradients.data(), m.data(), v.data(),
                       pointer(largest), rounded(weights.data()), alpha, keep, beta_1, beta_2, epsilon);
  }

  void adagrad(out weights, in gradients, out accumulator, float rate, float keep, float epsilon) override {
    step_of(weights, 2 * accumulator.size());
    cuda_kernels::adagrad(queue_, weights.size(), weights.data(), gradients.data(), accumulator.data(),
                          rounded(weights.data()), rate, keep, epsilon);
  }

  void look_back(out weights, out slow, float keep) override {
    count("look_back", {.floats = 2 * (weights.size() + slow.size())});
    cuda_kernels::look_back(queue_, weights.size(), weights.data(), slow.data(), rounded(weights.data()),
                            keep);
  }

 protected:
  /// Of an optimiser, which reads and writes so many floats of slots.
  void step_of(out weights, std::size_t slots) {
    bool const rounds = rounded(weights.data()) != nullptr;
    count("optimiser", {.floats = 3 * weights.size() + slots,
                        .bytes = rounds ? weights.size() * sizeof(std::uint16_t) : 0});
  }

  /// Memory for one operation.
  virtual float* scratch(std::size_t floats) = 0;

  /// Where these weights are kept as bfloat16, too; null: nowhere.
  virtual std::uint16_t* rounded(float const* weights) const = 0;

  cuda_kernels::queue queue_;
  std::optional<products> products_;

  /// Numbers of an operation. `again`: activations.
  struct amount {
    std::size_t activations = 0, floats = 0, bytes = 0, again = 0;
  };

  void count(std::string_view what, amount const& a) {
    std::size_t const activation = queue_.half ? sizeof(std::uint16_t) : sizeof(float);
    auto at = std::ranges::find(traffic_, what, &memory_traffic::operation);
    if (at == traffic_.end()) at = traffic_.insert(at, {.operation = what});
    ++at->calls;
    at->least += a.activations * activation + a.floats * sizeof(float) + a.bytes;
    at->again += a.again * activation;
  }

 private:
  /// Of what a convolution has written for a normalisation.
  struct known_moments {
    float const* of = nullptr;
    cuda_kernels::moments_in_parts parts;
  };

  std::vector<memory_traffic> traffic_;
  known_moments moments_;

  static float* pointer(out s) { return s.empty() ? nullptr : s.data(); }
  static float const* pointer(in s) { return s.empty() ? nullptr : s.data(); }
};

}  // namespace edl::cuda_library
