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
#include "edl/compute/device/memory_traffic.hpp"
#include "edl/compute/device/muon_step.hpp"
#include "edl/compute/device/placement.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// Which numbers `accelerator::add_rows` adds up, by lists in its memory. Result i is so many numbers from
/// number `at[i]` on, and the sum of terms [first[i], first[i + 1]). A term is `weights[k]` times as many
/// numbers from number `from[k]` on.
struct row_sums {
  std::size_t results = 0, terms = 0, width = 0;
  std::uint32_t const *at = nullptr, *first = nullptr, *from = nullptr;
  float const* weights = nullptr;
};

/// A backend with memory that the host does not see, on which a whole step of training stays. The variables
/// live there, steps are recorded once and repeated, and samples are kept. Losses and optimisers are computed
/// there, and gradients are summed with those of other accelerators.
///
/// Memory of activations has room for a float32 each; in `precision::bfloat16` it holds a bfloat16 each at
/// its beginning: `store` and `load` convert. Variables, gradients and statistics are float32 always.
///
/// Calls return before the work is done, unless they say otherwise. Thread safety: one thread, or several in
/// turn, of which each says so (`use`).
class accelerator : public backend {
 public:
  /// "NVIDIA H200, 139.8 GiB, CUDA 13.0, cuDNN 9.19.0"
  virtual std::string describe() const = 0;

  // ---- Memory ----

  /// Pinned memory of the host: copies need not wait for it.
  virtual float* allocate_host(std::size_t floats) = 0;  ///< zeroed
  virtual void release_host(float* memory) noexcept = 0;

  /// The same for somebody else's memory, until `unpin`. False where the system does not give it; it can be
  /// used all the same. No other pinned memory may be on its pages. Safe on any thread.
  virtual bool pin(std::span<std::byte const> host) = 0;
  virtual void unpin(std::byte const* host) noexcept = 0;

  /// float32 as it is, from one place of the accelerator's memory to another.
  virtual void move(in from, out to) = 0;

  /// float32 to activations, and back.
  virtual void store(in from, out to) = 0;
  virtual void load(in from, out to) = 0;

  /// Bytes that are left of the accelerator's memory.
  virtual std::size_t free_memory() = 0;

  // ---- Steps ----

  /// `bind`: in bfloat16 these variables are kept in that precision, too. They are read anew by `refresh`,
  /// and by `step`s of an optimiser.
  virtual void refresh() = 0;

  /// Does `work`, which issues operations: the first time for a key as they come, from the second on as one
  /// graph, recorded then. Where that fails, `work` is called once more, and its operations come as the first
  /// time. Streams of random numbers take `step` for theirs. Work of one key is the same
  /// operations on the same memory, sizes and all. It throws what `work` throws.
  virtual void replay(std::uint64_t key, std::uint64_t step, std::function<void()> const& work) = 0;

  // ---- Together with others ----

  /// The accelerator is this thread's from now on, if no other one uses it meanwhile.
  virtual void use() = 0;

  virtual gpu_identity identity() = 0;

  /// Where `join` meets, for all members. Throws as it does.
  virtual gpu_meeting draw_meeting() = 0;

  /// Becomes member `rank` of `size`, which is not so before the communicator is ready. Throws edl::error
  /// where what sums them is not to be had or does not want to.
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

  // ---- Samples: float32, as they were fed. Lists are in the accelerator's memory, too, an entry for each
  // row. ----

  /// Row i of y, activations, shows row `rows[i]` of `from`, pictures, as `how[i]` says;
  /// `exact`: of a float32 each, whatever the precision.
  virtual void show(shape s, std::size_t batch, in from, std::uint32_t const* rows, placement const* how,
                    bool exact, out y) = 0;

  /// Row i of `from`, of so many numbers, becomes row `rows[i]` of `to`; no two the same.
  virtual void scatter_rows(std::size_t batch, std::size_t width, in from, std::uint32_t const* rows,
                            out to) = 0;

  /// Sums of rows of x, in their order, become rows of `to`, which is float32. So is x where `exact`, and
  /// activations elsewhere. No result is a term.
  virtual void add_rows(row_sums const& of, in x, bool exact, out to) = 0;

  // ---- Losses ----

  /// The losses of edl/compute/nn/losses.hpp: gradients (may be empty) of the mean, and `loss[0]`, the mean
  /// itself.
  virtual void softmax_cross_entropy(std::size_t rows, std::size_t classes, float label_smoothing, in outputs,
                                     std::int32_t const* labels, out gradients, out loss) = 0;
  virtual void sigmoid_cross_entropy(std::size_t rows, std::size_t outputs_of_a_row, float label_smoothing,
                                     in outputs, in labels, out gradients, out loss) = 0;
  virtual void mean_squared_error(std::size_t rows, std::size_t outputs_of_a_row, in outputs, in labels,
                                  out gradients, out loss) = 0;

  // ---- Optimisers: one step over a whole arena, as the rules of edl/optim say ----

  virtual void sgd(out weights, in gradients, out velocity, float rate, float momentum, float weight_decay,
                   bool nesterov) = 0;
  virtual void adam(out weights, in gradients, out m, out v, out largest, float alpha, float keep,
                    float beta_1, float beta_2, float epsilon) = 0;
  virtual void adagrad(out weights, in gradients, out accumulator, float rate, float keep, float epsilon) = 0;

  /// Of these matrices. Products are as precise as those of layers, and one for as many matrices as may be:
  /// smaller ones are padded.
  virtual void muon(muon_step const& how, std::span<muon_matrix const> of) = 0;

  /// slow ← keep · slow + (1 − keep) · weights, and weights ← slow.
  virtual void look_back(out weights, out slow, float keep) = 0;

  // ---- Looking on ----

  /// What operations have read and written since this was last asked for, in the order of their first calls.
  /// A step that is replayed counts when it is recorded, and not again.
  virtual std::vector<memory_traffic> take_traffic() = 0;
};

}  // namespace edl
