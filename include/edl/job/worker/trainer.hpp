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

/// A model bound to memory, as a worker sees it whatever the model. There is one virtual call per step, so
/// that the rest of the worker is compiled once. Thread safety: `make_batch`, `feed` and `has` are safe from
/// any thread; the rest is used by one thread.
class trainer {
 public:
  virtual ~trainer() = default;

  /// Host memory for one minibatch.
  virtual data::batch make_batch() const = 0;

  /// One record into row `row` of `b`. Throws data_error when the record lacks what the model wants, or its
  /// label is out of range.
  virtual void feed(example const& record, data::batch& b, int row, mode m) const = 0;

  /// Told, before all work, how many records of each kind it will see more than once: it may keep what
  /// `feed` makes of them. What comes of it, for the log; empty: nothing.
  virtual std::string expect(std::uint64_t training, std::uint64_t evaluation) {
    (void)training, (void)evaluation;
    return {};
  }

  /// Whether it has kept all samples of a batch, of which identity and records are known. The rest, but for
  /// the features, is in the batch then.
  virtual bool has(data::batch& b) const {
    (void)b;
    return false;
  }

  /// What computes, for the log: empty for the processor.
  virtual std::string device() const { return {}; }

  /// Parameters, then state. Who has written there says so: `variables_written`.
  virtual std::span<float> variables() = 0;
  virtual void variables_written() {}

  /// Where variables, slots and steps can be while it trains, instead of with whoever pulls and pushes; null:
  /// nowhere. From the arena's first `place` on, `variables` and `gradients` are not written any more. What
  /// `variables_written` brings then, passes are computed with until `resume`; the arena keeps its own.
  virtual edl::arena* arena() { return nullptr; }
  virtual void resume() {}

  /// One per parameter, of the minibatch last trained on.
  virtual view<float> gradients() const = 0;

  /// The same, to be changed before they are used; empty where they are not in host memory.
  virtual std::span<float> gradients_to_change() { return {}; }

  /// Which features are rows of tables, which `give_rows` is told before a batch is computed with.
  virtual sparse::embedding_layout const& embeddings() const {
    static sparse::embedding_layout const none;
    return none;
  }

  /// Of the features of the minibatch last trained on, in host memory; empty where none are rows of tables,
  /// or `row_gradients` does without.
  virtual view<float> input_gradients() const { return {}; }

  /// Puts the rows of a batch where it is computed with next: among its features, or where a device looks
  /// them up.
  virtual void give_rows(data::batch& b, sparse::minibatch_rows const& rows) { rows.fill(b); }

  /// The gradients of the rows that were given, after `train`; valid until the next call.
  virtual std::span<sparse::row_gradients const> row_gradients(data::batch const& b,
                                                               sparse::minibatch_rows& rows) {
    return rows.sum(b, input_gradients());
  }

  /// Forward and backward. Returns the mean loss, leaves the gradients and the new state. `step` keys the
  /// random streams: the same minibatch computed again draws the same. A loss that is not finite leaves no
  /// gradients; otherwise `ready`, if it is anything, may be called on the way.
  virtual double train(data::batch const& b, std::uint64_t step, gradients_ready const& ready) = 0;

  /// Adds the minibatch to the metrics' totals.
  virtual void evaluate(data::batch const& b, std::span<double> totals) = 0;

  /// Calls visit(row, loss of the record by itself, its outputs) for each row, in an evaluation. Throws
  /// usage_error where not the processor computes.
  using visit_row = std::function<void(int row, double loss, view<float> outputs)>;
  virtual void inspect(data::batch const& b, visit_row const& visit);

  /// rows × outputs, until the next call.
  virtual view<float> predict(data::batch const& b) = 0;

  /// Calls work(0), work(1), … side by side, once on each thread that computes, and waits for all. `work`
  /// throws nothing.
  virtual void share(std::function<void(int)> const& work) { work(0); }

  /// Threads of the host that have nothing to do while it computes, and may read records.
  virtual int idle_threads() const { return 0; }

  /// Doubles that `evaluate` adds to.
  virtual std::size_t totals() const = 0;

  /// Where the time went, if it was to be looked at.
  virtual nn::trace const* profile() const { return nullptr; }
};

inline void trainer::inspect(data::batch const&, visit_row const&) {
  throw usage_error("--worst and --wrong work on a processor only: add --device=cpu");
}

}  // namespace worker
}  // namespace edl
