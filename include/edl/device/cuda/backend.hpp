// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "edl/core/error.hpp"
#include "edl/core/random.hpp"
#include "edl/core/span.hpp"
#include "edl/device/activation.hpp"
#include "edl/device/cuda/communicator.hpp"
#include "edl/device/cuda/options.hpp"
#include "edl/device/geometry.hpp"
#include "edl/device/placement.hpp"

namespace edl {

/// What computes on a GPU: a stream of work, its memory, and the operations of `concept device`. It lives in
/// a library of its own (`libedl-cuda.so`), opened when a GPU is asked for, so that programs need neither the
/// toolkit to be built nor a driver to start.
///
/// Spans named `host` are host memory, all others the GPU's, from `allocate`. Memory of activations has room
/// for a float32 each; in `precision::bfloat16` it holds a bfloat16 each at its beginning: `store` and `load`
/// convert. Variables, gradients and statistics are float32 always.
///
/// Calls return before the work is done, unless they say otherwise. Errors are edl::error with the place and
/// the words of CUDA; those of work under way come with a later call. Thread safety: one thread, or several
/// in turn, of which each says so (`use`).
class cuda_backend {
 public:
  using in = view<float>;
  using out = std::span<float>;

  virtual ~cuda_backend() = default;

  /// "NVIDIA H200, 139.8 GiB, CUDA 13.0, cuDNN 9.19.0"
  virtual std::string describe() const = 0;

  // ---- Memory ----

  virtual float* allocate(std::size_t floats) = 0;  ///< zeroed
  virtual void release(float* memory) noexcept = 0;

  /// Pinned memory of the host: copies need not wait for it.
  virtual float* allocate_host(std::size_t floats) = 0;  ///< zeroed
  virtual void release_host(float* memory) noexcept = 0;

  /// The same for somebody else's memory, until `unpin`. False where the system does not give it; it can be
  /// used all the same. No other pinned memory may be on its pages. Safe on any thread.
  virtual bool pin(std::span<std::byte const> host) = 0;
  virtual void unpin(std::byte const* host) noexcept = 0;

  /// Copies. What is not pinned has been read, or written, on return.
  virtual void upload(std::span<std::byte const> host, void* to) = 0;
  virtual void download(void const* from, std::span<std::byte> host) = 0;

  /// float32 as it is, from one place of the GPU's memory to another.
  virtual void move(in from, out to) = 0;

  /// float32 to activations, and back.
  virtual void store(in from, out to) = 0;
  virtual void load(in from, out to) = 0;

  /// Bytes that are left of the GPU's memory.
  virtual std::size_t free_memory() = 0;

  /// Waits until all is done.
  virtual void synchronize() = 0;

  // ---- Steps ----

  /// Variables that are factors of products: in bfloat16 they are kept in that precision, too. They are read
  /// anew by `refresh`, and by `step`s of an optimiser.
  virtual void bind(in parameters) = 0;
  virtual void refresh() = 0;

  /// Does `work`, which issues operations: the first time for a key as they come, from the second on as one
  /// graph, recorded then. Streams of random numbers take `step` for theirs. Work of one key is the same
  /// operations on the same memory, sizes and all. It throws what `work` throws.
  virtual void replay(std::uint64_t key, std::uint64_t step, std::function<void()> const& work) = 0;

  // ---- Together with other GPUs ----

  /// The GPU is this thread's from now on, if no other one uses it meanwhile.
  virtual void use() = 0;

  virtual gpu_identity identity() = 0;

  /// Where `join` meets, for all members. Throws as it does.
  virtual gpu_meeting draw_meeting() = 0;

  /// Becomes member `rank` of `size`, which is not so before the communicator is ready. Throws edl::error
  /// where NCCL is not to be had or does not want to.
  virtual std::unique_ptr<communicator> join(gpu_meeting const& where, int size, int rank) = 0;

  /// A point in the order of the work, by its number, from 0: the last that was given there. Within `replay`
  /// it cuts what is recorded.
  virtual void mark(int number) = 0;

  /// Waits until the work is there.
  virtual void await(int number) = 0;

  /// to = a − b; values /= by; to += x / by. float32 as it is.
  virtual void subtract(in a, in b, out to) = 0;
  virtual void divide(out values, float by) = 0;
  virtual void add_divided(in x, float by, out to) = 0;

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

  // ---- Tables: ids are float32 always; the row of what is none is NaN ----

  virtual void embedding_forward(embedding_geometry const& g, int batch, in ids, in table, out y) = 0;
  virtual void embedding_backward(embedding_geometry const& g, int batch, in ids, in dy, out dx,
                                  out dtable) = 0;

  // ---- Samples: float32, as they were fed. Lists are in the GPU's memory, too, an entry for each row. ----

  /// Row i of y, activations, shows row `rows[i]` of `from`, pictures, as `how[i]` says;
  /// `exact`: of a float32 each, whatever the precision.
  virtual void show(shape s, std::size_t batch, in from, std::uint32_t const* rows, placement const* how,
                    bool exact, out y) = 0;

  /// Row i of `from`, of so many numbers, becomes row `rows[i]` of `to`; no two the same.
  virtual void scatter_rows(std::size_t batch, std::size_t width, in from, std::uint32_t const* rows,
                            out to) = 0;

  // ---- Rows ----

  virtual void softmax_forward(std::size_t rows, std::size_t classes, in x, out y) = 0;
  virtual void softmax_backward(std::size_t rows, std::size_t classes, in y, in dy, out dx) = 0;

  /// The losses of edl/nn/losses.hpp: gradients (may be empty) of the mean, and `loss[0]`, the mean itself.
  virtual void softmax_cross_entropy(std::size_t rows, std::size_t classes, float label_smoothing, in outputs,
                                     std::int32_t const* labels, out gradients, out loss) = 0;
  virtual void sigmoid_cross_entropy(std::size_t rows, std::size_t outputs_of_a_row, in outputs, in labels,
                                     out gradients, out loss) = 0;
  virtual void mean_squared_error(std::size_t rows, std::size_t outputs_of_a_row, in outputs, in labels,
                                  out gradients, out loss) = 0;

  // ---- Optimisers: one step over a whole arena, as the rules of edl/optim say ----

  virtual void sgd(out weights, in gradients, out velocity, float rate, float momentum, float weight_decay,
                   bool nesterov) = 0;
  virtual void adam(out weights, in gradients, out m, out v, out largest, float alpha, float keep,
                    float beta_1, float beta_2, float epsilon) = 0;
  virtual void adagrad(out weights, in gradients, out accumulator, float rate, float keep, float epsilon) = 0;

  /// slow ← keep · slow + (1 − keep) · weights, and weights ← slow.
  virtual void look_back(out weights, out slow, float keep) = 0;
};

/// No GPU is to be had. `installed`: the library is there, so that somebody may have expected one.
struct cuda_unavailable : error {
  cuda_unavailable(std::string const& why, bool with_library) : error(why), installed(with_library) {}
  bool installed;
};

/// Opens the library (`libedl-cuda.so`, beside the program, in ../lib, where its own libraries are, or as
/// EDL_CUDA_LIBRARY names it) and a GPU. Throws cuda_unavailable, which says what is missing: the library,
/// one that it needs, the driver, or a GPU.
std::shared_ptr<cuda_backend> open_cuda(cuda_options const& o);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cuda/backend.ipp"
#endif
