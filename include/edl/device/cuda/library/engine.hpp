// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "edl/device/accelerator.hpp"
#include "edl/device/cuda/library/claim.hpp"
#include "edl/device/cuda/library/kernels.hpp"
#include "edl/device/cuda/library/products.hpp"

namespace edl::cuda_library {

/// A GPU, and one stream of work on it.
class engine final : public accelerator {
 public:
  explicit engine(cuda_options const& o);
  ~engine() override;

  std::string describe() const override;
  float* allocate(std::size_t floats) override;
  void release(float* memory, std::size_t floats) noexcept override;
  float* allocate_host(std::size_t floats) override;
  void release_host(float* memory) noexcept override;
  bool pin(std::span<std::byte const> host) override;
  void unpin(std::byte const* host) noexcept override;
  void upload(std::span<std::byte const> host, void* to) override;
  void download(void const* from, std::span<std::byte> host) override;
  void move(in from, out to) override;
  void store(in from, out to) override;
  void load(in from, out to) override;
  std::size_t free_memory() override;
  void synchronize() override;
  void bind(in parameters) override;
  void refresh() override;
  void replay(std::uint64_t key, std::uint64_t step, std::function<void()> const& work) override;

  void use() override;
  gpu_identity identity() override;
  gpu_meeting draw_meeting() override;
  std::unique_ptr<communicator> join(gpu_meeting const& where, int size, int rank) override;
  void mark(int number) override;
  void await(int number) override;
  void subtract(in a, in b, out to) override;
  void divide(out values, float by) override;
  void add_divided(in x, float by, out to) override;

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

  void elementwise_forward(elementwise f, float parameter, in x, out y) override;
  void elementwise_backward(elementwise f, float parameter, in y, in dy, out dx) override;
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

  void show(shape s, std::size_t batch, in from, std::uint32_t const* rows, placement const* how, bool exact,
            out y) override;
  void scatter_rows(std::size_t batch, std::size_t width, in from, std::uint32_t const* rows,
                    out to) override;

  void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) override;
  void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) override;
  void softmax_cross_entropy(std::size_t rows, std::size_t classes, float label_smoothing, in outputs,
                             std::int32_t const* labels, out gradients, out loss) override;
  void sigmoid_cross_entropy(std::size_t rows, std::size_t columns, in outputs, in labels, out gradients,
                             out loss) override;
  void mean_squared_error(std::size_t rows, std::size_t columns, in outputs, in labels, out gradients,
                          out loss) override;

  void sgd(out weights, in gradients, out velocity, float rate, float momentum, float weight_decay,
           bool nesterov) override;
  void adam(out weights, in gradients, out m, out v, out largest, float alpha, float keep, float beta_1,
            float beta_2, float epsilon) override;
  void adagrad(out weights, in gradients, out accumulator, float rate, float keep, float epsilon) override;
  void look_back(out weights, out slow, float keep) override;

 private:
  struct piece {
    cudaGraphExec_t graph = nullptr;  // null: nothing lies before the mark
    int mark = -1;                    // behind it; −1: none
  };
  struct recording {
    int times = 0;
    std::vector<piece> pieces;
  };

  float* scratch(std::size_t floats);
  std::uint16_t* rounded(float const* weights) const;
  cudaEvent_t point(int mark);
  void begin_piece();
  piece end_piece(int mark);
  std::vector<piece> record(std::function<void()> const& work);
  static void destroy(std::vector<piece> const& pieces) noexcept;

  void take_free_one(int count);

  int index_;
  claim claim_;
  edl::precision precision_;
  cudaStream_t stream_ = nullptr;
  cuda_kernels::queue queue_;
  std::uint64_t* step_ = nullptr;
  // Never given back before the end: graphs that were recorded hold on to it.
  std::vector<float*> scratches_;
  std::size_t scratch_size_ = 0;
  in bound_;
  std::uint16_t* rounded_ = nullptr;
  std::map<std::uint64_t, recording> recordings_;
  std::vector<piece>* recorded_ = nullptr;  // what is recorded now
  std::vector<cudaEvent_t> points_;         // by number
  std::optional<products> products_;
};

}  // namespace edl::cuda_library
