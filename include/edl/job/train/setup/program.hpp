// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/weight_name.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/sparse/embedding_layout.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/job/train/prediction/model_output.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"
#include "edl/job/train/setup/initial_variables.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::onnx {

class graph;

}  // namespace edl::onnx

namespace edl::train {

/// An input of a network whose values are numbers.
struct number_input {
  std::string_view name;             ///< empty: it is the only one
  std::size_t first = 0, count = 0;  ///< in the row of a sample
};

/// All that a binary knows of its model, so that what runs it is compiled once.
struct program {
  parameter_layout layout;
  sparse::embedding_layout embeddings;
  std::size_t outputs = 0;            ///< numbers that the network gives for one record
  std::vector<model_output> heads;    ///< what these are
  shape input;                        ///< of the network
  std::vector<number_input> numbers;  ///< of its inputs, those of numbers
  std::unique_ptr<update_rule> rule;
  edl::rates rates;     ///< of parts, if the model says so
  hyperparameters set;  ///< with the values that hold

  /// The same model with other values of these.
  std::function<program(hyperparameters const&)> with;

  /// Names of its variables in the files of others, if it says so.
  std::vector<weight_name> weight_names;

  /// How the model opens paths of its own, if it says so; empty otherwise.
  data::opener open;

  /// What the model's `feed` thinks of a record: throws as `worker::trainer::feed`, but keeps nothing.
  std::function<void(example const& record, mode m)> feed;

  /// The model bound to memory.
  std::function<std::unique_ptr<worker::trainer>(worker::trainer_options const&)> make_trainer;

  /// Says how the network is computed, and returns the price of --memory_budget, as `nn::explain`.
  std::function<std::string(std::ostream& to, worker::trainer_options const&)> explain;

  /// Adds the network to a graph. Throws error for a layer that cannot be exported.
  std::function<void(onnx::graph& to)> to_onnx;

  /// Initial values of elements [first, first + values.size()) of the arena.
  std::function<void(std::uint64_t seed, std::size_t first, std::span<float> values)> initialise;

  /// What the model makes of its training data before the first step, if it says so: some initial values.
  std::function<void(data::source const& training, bool skip_damaged, initial_variables& into)> prepare;

  /// The metrics by name, from their totals over any number of workers. Of twice as many totals: those of
  /// float32, "float32_" before their names, behind the others.
  std::function<std::vector<std::pair<std::string, double>>(view<double> totals)> metrics;

  std::vector<std::string> metric_names;  ///< in their order

  /// What the model wants done with predictions, if it says so: rows × outputs, in the process of that
  /// worker. `records`: the number of each among all records.
  std::function<void(int rows, view<float> outputs, int worker, view<std::uint64_t> records)> on_predictions;
};

}  // namespace edl::train
