// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/backend.hpp"
#include "edl/compute/device/communicator.hpp"
#include "edl/compute/device/generated.hpp"
#include "edl/compute/device/memory_traffic.hpp"
#include "edl/compute/device/muon_step.hpp"
#include "edl/compute/device/placement.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The sums that `accelerator::add_rows` computes, as lists in the accelerator's memory. Result i is a run of
/// numbers that begins at number `at[i]`; it is the sum of terms [first[i], first[i + 1]). Term k is
/// `weights[k]` times the run of the same length that begins at number `from[k]`.
struct row_sums {
  std::size_t results = 0, terms = 0, width = 0;
  std::uint32_t const *at = nullptr, *first = nullptr, *from = nullptr;
  float const* weights = nullptr;
};

/// A backend whose memory the host cannot access, and that keeps a whole training step to itself. It holds
/// the variables, records steps once and replays them, and stores samples. It computes losses and optimisers,
/// and sums gradients with other accelerators.
///
/// Memory for activations has room for one float32 per element. In `precision::bfloat16` it holds one
/// bfloat16 per element, packed at its beginning: `store` and `load` convert. Variables, gradients and
/// statistics are always float32.
///
/// Calls return before the work is done, unless they say otherwise. Thread safety: one thread at a time; a
/// thread that takes over calls `use` first.
class accelerator : public backend {
 public:
  /// "NVIDIA H200, 139.8 GiB, CUDA 13.0, cuDNN 9.19.0"
  virtual std::string describe() const = 0;

  // ---- Memory ----

  /// Pinned host memory: copies from and to it are asynchronous.
  virtual float* allocate_host(std::size_t floats) = 0;  ///< zeroed
  virtual void release_host(float* memory) noexcept = 0;

  /// Pins memory that the caller owns, until `unpin`. Returns false where the system refuses; the memory can
  /// be used all the same. No other pinned memory may share its pages. Safe on any thread.
  virtual bool pin(std::span<std::byte const> host) = 0;
  virtual void unpin(std::byte const* host) noexcept = 0;

  /// Copies float32 numbers, unconverted, within the accelerator's memory.
  virtual void move(in from, out to) = 0;

  /// Convert float32 numbers to activations, and back.
  virtual void store(in from, out to) = 0;
  virtual void load(in from, out to) = 0;

  /// Free bytes of the accelerator's memory.
  virtual std::size_t free_memory() = 0;

  // ---- Steps ----

  /// In bfloat16, the accelerator also keeps a bfloat16 copy of the variables that `bind` names. `refresh`
  /// and every `step` of an optimiser update that copy.
  virtual void refresh() = 0;

  /// Runs `work`, which issues operations. The first call for a key issues them directly; the second records
  /// them as a graph, and later calls launch that graph. If recording fails, `work` runs once more and issues
  /// its operations directly. Streams of random numbers use `step` as their step. Work of one key must issue
  /// the same operations on the same memory, with the same sizes. Throws what `work` throws.
  virtual void replay(std::uint64_t key, std::uint64_t step, std::function<void()> const& work) = 0;

  // ---- Together with others ----

  /// Binds the accelerator to the calling thread. No other thread may use it meanwhile.
  virtual void use() = 0;

  virtual gpu_identity identity() = 0;

  /// Draws the meeting point of a later `join`. One member draws it for all. Throws as `join` does.
  virtual gpu_meeting draw_meeting() = 0;

  /// Starts to join a group as member `rank` of `size`; the member has joined once the communicator is
  /// `ready`. Throws edl::error where NCCL is unavailable or fails.
  virtual std::unique_ptr<communicator> join(gpu_meeting const& where, int size, int rank) = 0;

  /// Marks the current end of the issued work with `number`, from 0. A later mark replaces one of the same
  /// number. Within `replay`, a mark splits the recording.
  virtual void mark(int number) = 0;

  /// Waits until the accelerator has reached this mark.
  virtual void await(int number) = 0;

  /// to = a − b; values /= by; to += x / by. All numbers are float32.
  virtual void subtract(in a, in b, out to) = 0;
  virtual void divide(out values, float by) = 0;
  virtual void add_divided(in x, float by, out to) = 0;

  // ---- Samples: float32, as the host uploaded them. Lists have one entry per row and lie in the
  // accelerator's memory, too. ----

  /// Writes picture `rows[i]` of `from`, placed as `how[i]` says, into row i of the activations y. `exact`: y
  /// is float32, whatever the precision.
  virtual void show(shape s, std::size_t batch, in from, std::uint32_t const* rows, placement const* how,
                    bool exact, out y) = 0;

  /// Copies row i of `from` (`width` numbers) to row `rows[i]` of `to`. No row may occur twice.
  virtual void scatter_rows(std::size_t batch, std::size_t width, in from, std::uint32_t const* rows,
                            out to) = 0;

  /// Writes sums of rows of x, added in list order, to rows of `to`. `to` is float32; x is float32 if
  /// `exact`, and activations otherwise. No result may be a term.
  virtual void add_rows(row_sums const& of, in x, bool exact, out to) = 0;

  // ---- Losses ----

  /// The losses of edl/compute/nn/losses.hpp. They compute the gradients of the mean (not if that span is
  /// empty), and put the mean itself into `loss[0]`.
  virtual void softmax_cross_entropy(std::size_t rows, std::size_t classes, float label_smoothing, in outputs,
                                     std::int32_t const* labels, out gradients, out loss) = 0;
  virtual void sigmoid_cross_entropy(std::size_t rows, std::size_t outputs_of_a_row, float label_smoothing,
                                     in outputs, in labels, out gradients, out loss) = 0;
  virtual void mean_squared_error(std::size_t rows, std::size_t outputs_of_a_row, in outputs, in labels,
                                  out gradients, out loss) = 0;

  // ---- Optimisers: one step over a whole arena, by the rules of edl/optim ----

  virtual void sgd(out weights, in gradients, out velocity, float rate, float momentum, float weight_decay,
                   bool nesterov) = 0;
  virtual void adam(out weights, in gradients, out m, out v, out largest, float alpha, float keep,
                    float beta_1, float beta_2, float epsilon) = 0;
  virtual void adagrad(out weights, in gradients, out accumulator, float rate, float keep, float epsilon) = 0;

  /// One step for these matrices. Products have the precision of layers' products. As many matrices as
  /// possible share one product; smaller ones are padded.
  virtual void muon(muon_step const& how, std::span<muon_matrix const> of) = 0;

  /// slow ← keep · slow + (1 − keep) · weights, and weights ← slow.
  virtual void look_back(out weights, out slow, float keep) = 0;

  // ---- Measuring ----

  /// The bytes that operations have read and written since the last call, in the order of their first calls.
  /// A step that is replayed counts once, when it is recorded.
  virtual std::vector<memory_traffic> take_traffic() = 0;

  // ---- Generated kernels ----

  /// Runs kernels, which it compiles when it first meets their program with this shape. Throws edl::error
  /// with the name of the layer if they do not compile, or if there is no compiler.
  virtual void run(generated const& what, generated_call const& with) = 0;
};

}  // namespace edl
