// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/sparse/embedding_layout.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/error.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/span.hpp"
#include "edl/job/worker/trainer_options.hpp"

namespace edl {

class arena;
class example;

namespace nn {
class trace;
}

namespace worker {

/// Called while gradients are computed: those from number `first` on are final.
using gradients_ready = std::function<void(std::size_t first)>;

/// A worker's view of a model bound to memory. There is one virtual call per step, so that the rest of the
/// worker is compiled once. Thread safety: `make_batch`, `feed` and `has` are safe from any thread; use the
/// rest on one thread.
class trainer {
 public:
  virtual ~trainer() = default;

  /// Host memory for one minibatch.
  virtual data::batch make_batch() const = 0;

  /// Writes a record into row `row` of `b`. Throws data_error if the record lacks a feature that the model
  /// needs, or its label is out of range.
  virtual void feed(example const& record, data::batch& b, int row, mode m) const = 0;

  /// Call before all work with the number of records of each kind that it will see more than once: it may
  /// keep their samples. Returns the effect, for the log; empty: none.
  virtual std::string expect(std::uint64_t training, std::uint64_t evaluation) {
    (void)training, (void)evaluation;
    return {};
  }

  /// Whether it has kept all samples of a batch, whose identity and records are known. It then fills in
  /// everything but the features.
  virtual bool has(data::batch& b) const {
    (void)b;
    return false;
  }

  /// The device, for the log: empty for the processor.
  virtual std::string device() const { return {}; }

  /// Parameters, then state. After writing to them, call `variables_written`.
  virtual std::span<float> variables() = 0;
  virtual void variables_written() {}

  /// The arena that can store variables and slots and make steps during training, instead of the caller;
  /// null: none. After the arena's first `place`, `variables` and `gradients` are no longer written. Passes
  /// then use variables set by `variables_written` until `resume`; the arena keeps its own.
  virtual edl::arena* arena() { return nullptr; }
  virtual void resume() {}

  /// One per parameter, of the minibatch last trained on.
  virtual view<float> gradients() const = 0;

  /// The same, for changes before they are used; empty if they are not in host memory.
  virtual std::span<float> gradients_to_change() { return {}; }

  /// The features that are rows of tables; `give_rows` must precede the computation of a batch.
  virtual sparse::embedding_layout const& embeddings() const {
    static sparse::embedding_layout const none;
    return none;
  }

  /// The gradients of the features of the minibatch last trained on, in host memory; empty if none are rows
  /// of tables, or `row_gradients` does not need them.
  virtual view<float> input_gradients() const { return {}; }

  /// Puts the rows of a batch where the next computation reads them: among its features, or where a device
  /// looks them up.
  virtual void give_rows(data::batch& b, sparse::minibatch_rows const& rows) { rows.fill(b); }

  /// The gradients of the rows that were given, after `train`; valid until the next call.
  virtual std::span<sparse::row_gradients const> row_gradients(data::batch const& b,
                                                               sparse::minibatch_rows& rows) {
    return rows.sum(b, input_gradients());
  }

  /// Forward and backward pass. Returns the mean loss, and writes the gradients and the new state. `step`
  /// seeds the random streams: recomputing the same minibatch draws the same numbers. If the loss is not
  /// finite, there are no gradients; otherwise it may call `ready`, unless empty, during the pass.
  virtual double train(data::batch const& b, std::uint64_t step, gradients_ready const& ready) = 0;

  /// Adds the minibatch to the metrics' totals.
  virtual void evaluate(data::batch const& b, std::span<double> totals) = 0;

  /// Calls visit(row, the record's own loss, its outputs) for each row, in an evaluation. Throws usage_error
  /// unless the processor computes.
  using visit_row = std::function<void(int row, double loss, view<float> outputs)>;
  virtual void inspect(data::batch const& b, visit_row const& visit);

  /// rows × outputs, until the next call.
  virtual view<float> predict(data::batch const& b) = 0;

  /// Calls work(0), work(1), … concurrently, once on each compute thread, and waits for all. `work` must not
  /// throw.
  virtual void share(std::function<void(int)> const& work) { work(0); }

  /// Number of host threads that are idle while it computes, and may read records.
  virtual int idle_threads() const { return 0; }

  /// Number of doubles that `evaluate` adds to.
  virtual std::size_t totals() const = 0;

  /// The time of the passes, if profiling is on; otherwise null.
  virtual nn::trace const* profile() const { return nullptr; }
};

inline void trainer::inspect(data::batch const&, visit_row const&) {
  throw usage_error("--worst and --wrong work on a processor only: add --device=cpu");
}

}  // namespace worker
}  // namespace edl
