// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/compute/device/placement.hpp"
#include "edl/core/random.hpp"

/// Our own kernels, as functions that issue them to a stream. Pointers are device pointers. `void` stands for
/// activations (float32, or bfloat16 if `queue::half`); `float` is always float32. The counterpart under
/// edl/compute/device/cpu documents what an operation means; a null pointer is an empty span.
namespace edl::cuda_kernels {

/// Where operations are issued.
struct queue {
  cudaStream_t stream = nullptr;
  bool half = false;                    ///< activations are bfloat16
  std::uint64_t const* step = nullptr;  ///< of random streams; kernels read it when they run
  int processors = 1;                   ///< multiprocessors of the GPU
};

// ---- elementwise.cu ----
void store(queue const& q, float const* from, void* to, std::size_t n);
void load(queue const& q, void const* from, float* to, std::size_t n);
void copy(queue const& q, void const* x, void* y, std::size_t n);
void add(queue const& q, activation f, void const* a, void const* b, void* y, std::size_t n);
void add_masked(queue const& q, void const* a, void const* b, void const* x, void* y, std::size_t n);
void store_bfloat16(queue const& q, void const* x, void* to, std::size_t n);
void load_bfloat16(queue const& q, void const* from, void* y, std::size_t n);
void copy_columns(queue const& q, std::size_t rows, std::size_t columns, void const* x, std::size_t x_first,
                  std::size_t x_stride, void* y, std::size_t y_first, std::size_t y_stride);
void forward(queue const& q, elementwise f, float slope, void const* x, void* y, std::size_t n);
void backward(queue const& q, elementwise f, float slope, void const* y, void const* dy, void* dx,
              std::size_t n);
void dropout_forward(queue const& q, float rate, random_stream const& random, void const* x, void* y,
                     std::byte* mask, std::size_t n);
void dropout_backward(queue const& q, float rate, std::byte const* mask, void const* dy, void* dx,
                      std::size_t n);

/// *to = step: the step of random streams in recorded work.
void set_step(queue const& q, std::uint64_t* to, std::uint64_t step);

// ---- pool.cu ----
void max_pool_forward(queue const& q, pool_geometry const& g, int batch, void const* x, void* y);
void max_pool_backward(queue const& q, pool_geometry const& g, int batch, void const* x, void const* y,
                       void const* dy, void* dx);
void average_pool_forward(queue const& q, pool_geometry const& g, int batch, void const* x, void* y);
void average_pool_backward(queue const& q, pool_geometry const& g, int batch, void const* dy, void* dx);

// ---- batch_norm.cu, batch_norm_backward.cu ----

/// Means, and sums of squared deviations from them, of a matrix's columns: [part of the rows][mean,
/// squares][column].
struct moments_in_parts {
  float const* at = nullptr;  ///< null: unknown
  unsigned parts = 0;
  /// Whether each part is followed by its number of rows. Otherwise parts are equal, and means are relative
  /// to the first row.
  bool counted = false;
};
/// The most floats that they take.
std::size_t moments_floats(queue const& q, std::size_t columns);

/// Computes the moments of x.
moments_in_parts find_moments(queue const& q, std::size_t rows, std::size_t columns, void const* x,
                              float* to);

/// The most floats of scratch memory that a batch normalisation takes.
std::size_t batch_norm_scratch(queue const& q, norm_chain const& c, int batch);
/// `known`: the moments of x; without them they are computed.
void batch_norm_train(queue const& q, norm_chain const& c, int batch, float momentum, float epsilon,
                      void const* x, float const* gamma, float const* beta, void const* more,
                      float* running_mean, float* running_variance, void* y, float* kept,
                      moments_in_parts known, float* scratch);
void batch_norm_evaluate(queue const& q, norm_chain const& c, int batch, float epsilon, void const* x,
                         float const* gamma, float const* beta, void const* more, float const* running_mean,
                         float const* running_variance, void* y, float* kept);
void batch_norm_recompute(queue const& q, norm_chain const& c, int batch, void const* x, float const* gamma,
                          float const* beta, float const* kept, void* y);
void batch_norm_backward(queue const& q, norm_chain const& c, int batch, bool through, void const* x,
                         float const* gamma, float const* beta, void const* dy, float const* kept, void* dx,
                         float* dgamma, float* dbeta, float* scratch);

// ---- samples.cu ----
void show(queue const& q, shape s, std::size_t batch, float const* from, std::uint32_t const* rows,
          placement const* how, void* y);
void scatter_rows(queue const& q, std::size_t batch, std::size_t width, float const* from,
                  std::uint32_t const* rows, float* to);

// ---- embedding.cu ---- (ids are float32 always, `n` of them; scratch: `embedding_scratch` floats)
void embedding_forward(queue const& q, embedding_geometry const& g, std::size_t n, float const* ids,
                       float const* table, void* y);
std::size_t embedding_scratch(embedding_geometry const& g, std::size_t n);
void embedding_backward(queue const& q, embedding_geometry const& g, std::size_t n, float const* ids,
                        void const* dy, void* dx, float* dtable, float* scratch);

void add_rows(queue const& q, row_sums const& of, void const* x, float* to);

// ---- rows.cu ----
void softmax_forward(queue const& q, std::size_t rows, std::size_t classes, void const* x, void* y);
void softmax_backward(queue const& q, std::size_t rows, std::size_t classes, void const* y, void const* dy,
                      void* dx);
void log_softmax_forward(queue const& q, std::size_t rows, std::size_t classes, void const* x, void* y);
void log_softmax_backward(queue const& q, std::size_t rows, std::size_t classes, void const* y,
                          void const* dy, void* dx);

void factorization_forward(queue const& q, std::size_t samples, std::size_t rows, std::size_t width,
                           void const* x, void* y);
void factorization_backward(queue const& q, std::size_t samples, std::size_t rows, std::size_t width,
                            void const* x, void const* dy, void* dx);

/// sums[column] = Σ over the rows of x: the gradient of a bias. `sum_rows_scratch` gives the size of
/// `scratch` in floats.
std::size_t sum_rows_scratch(queue const& q, std::size_t rows, std::size_t columns);
void sum_rows(queue const& q, std::size_t rows, std::size_t columns, void const* x, float* sums,
              float* scratch);

// ---- loss.cu ---- (scratch: `loss_scratch` floats; the mean goes to *loss)
std::size_t loss_scratch(queue const& q, std::size_t rows, std::size_t columns);
void softmax_cross_entropy(queue const& q, std::size_t rows, std::size_t classes, float label_smoothing,
                           void const* outputs, std::int32_t const* labels, void* gradients, float* loss,
                           float* scratch);
void sigmoid_cross_entropy(queue const& q, std::size_t rows, std::size_t columns, float label_smoothing,
                           void const* outputs, float const* labels, void* gradients, float* loss,
                           float* scratch);
void mean_squared_error(queue const& q, std::size_t rows, std::size_t columns, void const* outputs,
                        float const* labels, void* gradients, float* loss, float* scratch);

// ---- optimizer.cu ---- gives the same bits as the processor (`rounded`: also receives the new weights as
// bfloat16; may be null)
void sgd(queue const& q, std::size_t n, float* weights, float const* gradients, float* velocity,
         std::uint16_t* rounded, float rate, float momentum, float weight_decay, bool nesterov);
void adam(queue const& q, std::size_t n, float* weights, float const* gradients, float* m, float* v,
          float* largest, std::uint16_t* rounded, float alpha, float keep, float beta_1, float beta_2,
          float epsilon);
void adagrad(queue const& q, std::size_t n, float* weights, float const* gradients, float* accumulator,
             std::uint16_t* rounded, float rate, float keep, float epsilon);
void look_back(queue const& q, std::size_t n, float* weights, float* slow, std::uint16_t* rounded,
               float keep);
void round(queue const& q, float const* from, std::uint16_t* to, std::size_t n);

// ---- muon.cu ---- the parts of a step between products of matrices

/// One of the matrices of a batch.
struct muon_part {
  float* weights;
  std::uint16_t* rounded;  ///< receives the weights as bfloat16; null: none
  float const* gradients;
  float* momentum;
  std::size_t first;  ///< the first of its elements among those of all
  unsigned rows, columns;
  float keep, rate, norm;
};
/// They are padded to `high` × `wide`, and transposed if they are wider than high.
struct muon_batch {
  static constexpr unsigned most = 32;
  muon_part part[most];
  unsigned count;
  std::size_t high, wide;
};

/// m and u of edl/compute/optim/muon.hpp, and the sums of squares of u and of w, in `muon_sums` floats.
std::size_t muon_sums(queue const& q, unsigned count);
void muon_momentum(queue const& q, muon_batch const& b, float momentum, bool nesterov, float* u,
                   float* squares);
/// to = u / (its norm + 10⁻⁷), padded, with the type of activations.
void muon_begin(queue const& q, muon_batch const& b, float const* u, float const* squares, void* to);
/// to = α · 1 + β · gram + γ · square, of wide × wide; `rounded`: as bfloat16, too, where that is not null.
void muon_factor(queue const& q, muon_batch const& b, float alpha, float beta, float gamma, float const* gram,
                 float const* square, float* to, std::uint16_t* rounded);
/// w = keep · w − rate · o, where o lies as `muon_begin` laid it; w is scaled to its norm before, if any.
void muon_finish(queue const& q, muon_batch const& b, void const* o, float const* squares);

// ---- sum.cu ---- before and behind a sum between GPUs
void weigh(queue const& q, std::size_t n, float* values, float weight);
void divide(queue const& q, std::size_t n, float* values, float divisor);

/// to = a − b, and to += x / divisor.
void subtract(queue const& q, std::size_t n, float const* a, float const* b, float* to);
void add_divided(queue const& q, std::size_t n, float const* x, float divisor, float* to);

// ---- transpose.cu ---- kernels of convolutions, {height, width, in, out} and cuDNN's {out, height, width,
// in}: a matrix of `inputs` (height · width · in) rows and `outputs` columns, and its transpose.

/// `from`: float32, or bfloat16 where `from_half`; `to` is as activations are.
void transpose_weights(queue const& q, std::size_t inputs, std::size_t outputs, void const* from,
                       bool from_half, void* to);

/// `from` as activations are.
void transpose_gradients(queue const& q, std::size_t inputs, std::size_t outputs, void const* from,
                         float* to);

// ---- conv2d.cu ---- what cuDNN leaves to do

/// y = f(y + bias), a row at a time. `bias` may be null.
void finish_rows(queue const& q, std::size_t rows, std::size_t columns, activation f, float const* bias,
                 void* y);

/// Samples moved down and to the right by (down, right), which may be negative, in samples of another size of
/// as many channels. It is zero where nothing comes to lie.
void place(queue const& q, int batch, shape from, shape to, int down, int right, void const* x, void* y);

/// Convolutions by their definition, for what no library computes: any geometry, not fast.
void conv2d_forward(queue const& q, conv_geometry const& g, int batch, activation f, void const* x,
                    float const* kernel, float const* bias, void* y);
void conv2d_data(queue const& q, conv_geometry const& g, int batch, float const* kernel, void const* dy,
                 void* dx);
void conv2d_weights(queue const& q, conv_geometry const& g, int batch, void const* x, void const* dy,
                    float* dkernel);

// ---- kernel_gradient.cu ---- gradients of a kernel by tensor cores: of bfloat16, or of float32 rounded to
// tf32

/// Whether there is such a kernel for these extents; `half`: of bfloat16.
bool tensor_cores_take(conv_geometry const& g, bool half);

/// Floats of scratch that it takes.
std::size_t kernel_gradient_scratch(queue const& q, conv_geometry const& g, int batch);

/// Sums are float32, and never rounded on their way. Their order follows from the extents and the GPU's size,
/// so that bits are the same in every run.
void kernel_gradient(queue const& q, conv_geometry const& g, int batch, void const* x, void const* dy,
                     float* dkernel, float* scratch);

// ---- tensor_conv2d.cu ---- convolutions by tensor cores, of few channels: of bfloat16, or of float32
// rounded to tf32

/// Whether there is such a kernel for these extents: forward, or for the image's gradient (`data`).
bool tensor_conv2d_takes(conv_geometry const& g, bool data);

/// `kernel`: float32, or bfloat16 where `half_kernel`. Sums are float32. y = f(x ∗ kernel + bias), where
/// f is not `curved`.
void tensor_conv2d_forward(queue const& q, conv_geometry const& g, int batch, activation f, void const* x,
                           void const* kernel, bool half_kernel, float const* bias, void* y);

/// The same without an activation, with the moments of y's channels, for which `moments` has
/// `moments_floats`. Their order follows from the extents and the GPU's size.
moments_in_parts tensor_conv2d_moments(queue const& q, conv_geometry const& g, int batch, void const* x,
                                       void const* kernel, bool half_kernel, float const* bias, void* y,
                                       float* moments);

/// dx, to which `more` is added (null: nothing), and which is 0 where `above` (null: none) is not above 0.
void tensor_conv2d_data(queue const& q, conv_geometry const& g, int batch, void const* kernel,
                        bool half_kernel, void const* dy, void* dx, void const* more = nullptr,
                        void const* above = nullptr);

// ---- trial.cu ---- whether kernels of libraries compute what they should

/// What passes of a convolution read and write; null where a pass does not.
struct conv_tensors {
  void const* x = nullptr;
  float const *kernel = nullptr, *bias = nullptr;
  std::uint16_t const* rounded = nullptr;  ///< the kernel as bfloat16, where it is kept so, too
  void const *dy = nullptr,
             *more = nullptr;  ///< more: is added to dx, which then is 0 where x (if any) is not above 0
  void *y = nullptr, *dx = nullptr;
  float *dkernel = nullptr, *dbias = nullptr;
};

/// What a convolution's results are sums of products for.
enum class sum_of { response, image_gradient, kernel_gradient, bias_gradient };

constexpr std::size_t results_of(sum_of what, conv_geometry const& g, int batch) {
  return what == sum_of::response         ? std::size_t(batch) * g.out.size()
         : what == sum_of::image_gradient ? std::size_t(batch) * g.in.size()
         : what == sum_of::bias_gradient  ? std::size_t(g.out.channels)
                                          : g.patch() * std::size_t(g.out.channels);
}
/// Products of one result.
constexpr std::size_t terms_of(sum_of what, conv_geometry const& g, int batch) {
  return what == sum_of::response         ? g.patch()
         : what == sum_of::image_gradient ? std::size_t(g.kernel.height) * std::size_t(g.kernel.width) *
                                                std::size_t(g.out.channels / g.groups)
                                          : std::size_t(batch) * g.positions();
}

/// Uniform in [least, 1), float32 or bfloat16 (`half`) in memory. All but `fine` ones are numbers that
/// bfloat16 has.
void draw(queue const& q, std::size_t n, std::uint64_t key, float least, bool fine, bool half, void* to);

/// For `samples` results: themselves in `values`, and the sum of each in `parts` parts, which are to be added
/// and go through the activation. What is no number among all results makes a part so.
void sums_by_definition(queue const& q, sum_of what, conv_geometry const& g, int batch,
                        conv_tensors const& of, std::size_t samples, std::size_t parts, double* sums,
                        float* values);

}  // namespace edl::cuda_kernels
