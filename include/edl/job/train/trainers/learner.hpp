// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/data/test_time_augmentation.hpp"
#include "edl/compute/device/placement.hpp"
#include "edl/compute/sparse/embedding_layout.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

class accelerator;
class example;
struct record_stream;

namespace nn {
class trace;
}

namespace train {

/// The constant facts of a model.
struct learner_facts {
  shape input, output;
  std::size_t parameters = 0, state = 0;
  std::size_t labels = 1;                 ///< of a sample
  bool class_labels = false;              ///< they are classes
  bool of_ids = false;                    ///< features are ids
  sparse::embedding_layout embeddings{};  ///< features are rows of tables
  std::size_t totals = 0;                 ///< of its metrics
  bool augments = false;                  ///< training samples are augmented,
  bool places = false;                    ///< which the device can do
  bool averages = false;                  ///< evaluation and prediction average over `views`
  std::span<test_time_view const> views;
  float views_share = 1;  ///< share of a minibatch that is evaluated on all views
  bool loss_on_gpu = false, optimizer_on_gpu = false;  ///< a GPU supports them
};

/// A user's Model as trainers see it: its `feed`, its network in the memory of a device, its loss, metrics
/// and optimiser. One virtual call per pass, so that trainers are compiled once. Spans of variables,
/// gradients and outputs are in the device's memory. Thread safety: `feed`, `augment` and `place` are safe
/// from any thread; the rest is used by one thread at a time.
class learner {
 public:
  using in = view<float>;
  using out = std::span<float>;

  explicit learner(learner_facts const& f) : facts_(f) {}
  virtual ~learner() = default;

  learner_facts const& facts() const { return facts_; }

  // ---- Records ----

  /// Writes a record into row `row`. Throws what the model's `feed` throws, and data_error if a label cannot
  /// be used.
  virtual void feed(example const& record, data::batch& b, int row, mode m) const = 0;

  /// Applies the augmentation to features, or describes it.
  virtual void augment(out features, record_stream const& random) const = 0;
  virtual void place(record_stream const& random, placement& at) const = 0;

  // ---- The network: see `model` ----

  virtual out variables() = 0;
  virtual out gradients() = 0;
  virtual in forward(in x, int rows, mode what, std::uint64_t step) = 0;
  virtual out output_gradient() = 0;
  virtual void backward(in x, int rows, std::function<void(std::size_t first)> const& ready) = 0;
  virtual in input_gradient() = 0;
  virtual void set_trace(nn::trace* to) = 0;
  /// The effect of a memory budget, for the log; empty: none.
  virtual std::string plan() const { return {}; }

  // ---- Loss and metrics, on the host ----

  virtual double loss(int rows, in outputs, data::batch const& truth, out gradients) const = 0;
  virtual void measure(std::span<double> totals, int rows, in outputs, data::batch const& truth,
                       double loss) const = 0;

  // ---- On a GPU that supports them ----

  virtual void compute_loss(accelerator& gpu, int rows, in outputs, in labels, out gradients,
                            out loss) const = 0;
  virtual void apply_optimizer(accelerator& gpu, out weights, in gradients, std::span<out const> slots,
                               float rate, std::uint64_t step) const = 0;

 private:
  learner_facts facts_;
};

}  // namespace train
}  // namespace edl
