// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/adapted_model.hpp"
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
#include "edl/job/train/setup/hooks.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"
#include "edl/job/train/setup/initial_variables.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::onnx {

class graph;

}  // namespace edl::onnx

namespace edl::train {

class decoder;
struct decoder_options;

/// An input of a network whose values are numbers.
struct number_input {
  std::string_view name;             ///< empty: it is the only one
  std::size_t first = 0, count = 0;  ///< in the row of a sample
};

/// A binary's view of its model, so that the code that runs it is compiled once.
struct program {
  parameter_layout layout;
  sparse::embedding_layout embeddings;
  std::size_t outputs = 0;            ///< numbers that the network outputs for one record
  std::vector<model_output> heads;    ///< their meaning
  shape input;                        ///< of the network
  std::vector<number_input> numbers;  ///< its inputs of numbers
  std::unique_ptr<update_rule> rule;
  edl::rates rates;     ///< of parts, if the model sets them
  hyperparameters set;  ///< with their current values

  /// The same model with other hyperparameters.
  std::function<program(hyperparameters const&)> with;

  /// Names of its variables in other programs' files, if it declares them.
  std::vector<weight_name> weight_names;

  /// If the network has adapters (`nn::adapted`): its frozen variables.
  std::optional<checkpoint::adapted_model> adapted;

  /// Names of labels 0, 1, …, if the model declares them.
  std::vector<std::string> class_names;

  /// Opens the model's own formats; empty if it has none.
  data::opener open;

  /// Checks a record with the model's `feed`: throws as `worker::trainer::feed`, but keeps nothing.
  std::function<void(example const& record, mode m)> feed;

  /// The model bound to memory.
  std::function<std::unique_ptr<worker::trainer>(worker::trainer_options const&)> make_trainer;

  /// The model as one that continues a text; empty if it cannot, for the reason in `why_no_decoder`.
  std::function<std::unique_ptr<decoder>(decoder_options const&)> make_decoder;
  std::string why_no_decoder;  ///< the rest of a sentence about the model

  /// Prints how the network is computed, and returns the cost of --memory_budget, as `nn::explain`.
  std::function<std::string(std::ostream& to, worker::trainer_options const&)> explain;

  /// Adds the network to a graph. Throws error for a layer that cannot be exported.
  std::function<void(onnx::graph& to)> to_onnx;

  /// Initial values of elements [first, first + values.size()) of the arena.
  std::function<void(std::uint64_t seed, std::size_t first, std::span<float> values)> initialise;

  /// The model's `prepare`, if it has one: sets some initial values from the training data before the first
  /// step.
  std::function<void(data::source const& training, bool skip_damaged, initial_variables& into)> prepare;

  /// The metrics by name, from their totals over any number of workers. With twice as many totals: those of
  /// float32, prefixed with "float32_", after the others.
  std::function<std::vector<std::pair<std::string, double>>(view<double> totals)> metrics;

  std::vector<std::string> metric_names;  ///< in their order

  /// The model's `on_predictions`, if it has one: rows × outputs, in the worker's process. `records`: the
  /// number of each record.
  std::function<void(int rows, view<float> outputs, int worker, view<std::uint64_t> records)> on_predictions;

  /// The model's `on_step`, if it has one, in each process that trains.
  std::function<void(step_report const& step)> on_step;

  /// The model's `on_evaluation`, if it has one, in the master, or in a Local job's process. Returns why the
  /// job must stop; empty: it goes on.
  std::function<std::string(evaluation_report const& of)> on_evaluation;
  bool may_stop =
      false;  ///< whether `on_evaluation` may return a reason: `job_options::evaluation::asks_model`
};

}  // namespace edl::train
