// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "edl/app/command.hpp"
#include "edl/author/model_decoder.hpp"
#include "edl/author/model_learner.hpp"
#include "edl/author/model_outputs.hpp"
#include "edl/author/model_traits.hpp"
#include "edl/author/prepare.hpp"
#include "edl/author/programs.hpp"
#include "edl/compute/device/any_device.hpp"
#include "edl/compute/nn/adapted.hpp"
#include "edl/compute/nn/explain.hpp"
#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/onnx/network.hpp"
#include "edl/compute/sparse/network_embeddings.hpp"
#include "edl/job/train/trainers/trainers.hpp"

namespace edl {
namespace author {

template <class Model>
void describe(train::program& p, hyperparameters_of<Model> const& set);

/// The program of a model struct with these hyperparameters; empty for a wrong struct, which the compiler has
/// already reported.
template <class Model>
train::program make_program(hyperparameters_of<Model> const& set = {}) {
  train::program p;
  check_model<Model>();
  if constexpr (is_whole<Model>) describe<Model>(p, set);
  return p;
}

/// The heads of a loss, as outputs of a graph; empty for a loss of all outputs.
template <class Loss>
onnx::output_names head_names() {
  onnx::output_names names;
  if constexpr (requires(Loss const& l) { l.all; })
    []<class... Heads>(onnx::output_names& to, std::tuple<Heads...> const*) {
      (..., to.emplace_back(Heads::name, int(Heads::output.size())));
    }(names, static_cast<decltype(Loss::all) const*>(nullptr));
  return names;
}

/// Describes the adapters of a network and its frozen variables.
template <class Model>
void describe_adapters(train::program& p) {
  static constexpr auto& net = Model::network;
  checkpoint::adapted_model& of = p.adapted.emplace();
  of.frozen = model<Model::network, any_device>::frozen_layout();
  if constexpr (model_traits<Model>::names_weights)
    of.weight_names.assign(std::begin(Model::weight_names), std::end(Model::weight_names));
  nn::low_rank const how = nn::adapters_of(net.body, net.input);
  of.rank = how.rank, of.alpha = how.alpha;
  of.merge = [](view<float> adapters, std::span<float> frozen) {
    nn::merge_adapters(net.body, net.input, adapters, frozen);
  };
  of.name_adapters(p.layout);
  p.weight_names = of.adapter_names;
}

template <class Model>
void describe(train::program& p, hyperparameters_of<Model> const& set) {
  using network = model<Model::network, any_device>;
  p.layout = network::layout();
  if constexpr (network::frozen_count > 0) describe_adapters<Model>(p);
  p.embeddings = sparse::embedding_layout_of(Model::network.start);
  p.layout.tables = p.embeddings.tables;
  p.input = network::input;
  for (nn::input_place const& in : nn::input_places(Model::network.start))
    if (in.numbers) p.numbers.push_back({in.name, in.first, in.count});
  p.outputs = network::output.size();
  p.heads = model_outputs<typename model_traits<Model>::unweighted_loss>(network::output);
  p.rule = std::make_unique<typename model_traits<Model>::rule_type>(
      model_traits<Model>::make_rule(set, p.layout));
  auto const borders = p.rule->borders();
  p.layout.borders.assign(borders.begin(), borders.end());
  p.rates = edl::detail::rates_of<Model>(set);
  p.set = describe(set);
  p.with = [](train::hyperparameters const& other) {
    auto const values = with_values<hyperparameters_of<Model>>(other);
    detail::check_options<Model>(values);
    return make_program<Model>(values);
  };
  p.make_trainer = [set](worker::trainer_options const& o) { return make_trainer<Model>(o, set); };
  p.why_no_decoder = why_no_decoder<Model>();
  if constexpr (nn::fault_of_decoding(Model::network).what == nn::decoding_fault::none)
    p.make_decoder = [set](train::decoder_options const& o) -> std::unique_ptr<train::decoder> {
      return std::make_unique<model_decoder<Model>>(o, set);
    };
  p.explain = [](std::ostream& to, worker::trainer_options const& o) {
    return nn::explain<Model::network>(to, *train::open_device(o, is_portable<Model>), {o.max_batch, o.keep},
                                       o.memory_budget);
  };
  if constexpr (network::frozen_count == 0)
    p.to_onnx = [set](onnx::graph& to) {
      to.set(hyperparameter_view(set));
      if constexpr (model_traits<Model>::averages)
        to.note("left_out", "test-time augmentation: `predict` averages its views");
      onnx::add_network(to, Model::network, head_names<typename model_traits<Model>::loss_type>());
    };
  p.feed = [](example const& record, mode m) {
    std::vector<float> row(single_feed<Model>::size);
    single_feed<Model>()(record, m, row);
  };
  p.initialise = [](std::uint64_t seed, std::size_t first, std::span<float> values) {
    network::initialise(seed, first, values);
  };
  if constexpr (model_traits<Model>::names_weights && network::frozen_count == 0)
    p.weight_names.assign(std::begin(Model::weight_names), std::end(Model::weight_names));
  if constexpr (requires { Model::class_names; }) {
    static_assert(std::size(Model::class_names) == std::max<std::size_t>(network::output.size(), 2),
                  "edl: the model's `class_names` needs a name for each output of the network, or two names "
                  "for one output, of no and of yes");
    p.class_names.assign(std::begin(Model::class_names), std::end(Model::class_names));
  }
  if constexpr (model_traits<Model>::opens) p.open = Model::open;
  if constexpr (model_traits<Model>::prepares) p.prepare = prepare<Model>;
  p.metrics = [](view<double> totals) {
    using metrics = typename model_traits<Model>::metrics;
    auto all = metrics::values(totals.first(metrics::totals));
    if (totals.size() > metrics::totals)  // of a lower precision, with those of float32 behind them
      for (auto& [name, value] : metrics::values(totals.subspan(metrics::totals)))
        all.emplace_back("float32_" + name, value);
    return all;
  };
  for (auto const& [name, value] : p.metrics(std::vector<double>(model_traits<Model>::metrics::totals)))
    p.metric_names.push_back(name);
  if constexpr (model_traits<Model>::takes_predictions)
    p.on_predictions = [](int rows, view<float> outputs, int worker,
                          [[maybe_unused]] view<std::uint64_t> records) {
      if constexpr (edl::detail::hears_of_records<Model>)
        Model::on_predictions(network::output, rows, outputs, worker, records);
      else
        Model::on_predictions(network::output, rows, outputs, worker);
    };
  if constexpr (edl::detail::good_on_step<Model>) p.on_step = Model::on_step;
  p.may_stop = edl::detail::may_stop<Model>;
  if constexpr (edl::detail::may_stop<Model>)
    p.on_evaluation = Model::on_evaluation;
  else if constexpr (edl::detail::good_on_evaluation<Model>)
    p.on_evaluation = [](evaluation_report const& of) {
      Model::on_evaluation(of);
      return std::string();
    };
}

/// Registers the model when the program or the library is loaded: a caller of the predictor library never
/// calls `main`.
template <class Model>
inline bool const entered = (programs().push_back([] { return make_program<Model>(); }), true);

}  // namespace author

/// Runs a model struct as a program: master, parameter server or worker of a job, according to EDL_ROLE.
/// Without EDL_ROLE it is the user's command (`train`, `evaluate`, `predict`, `data`; `--help` lists the
/// flags). Returns the exit code: 0 on success, 1 otherwise, with the reason in one line on standard error.
template <class Model>
int run(int argc, char** argv) {
  auto p = author::make_program<Model>();  // first: the compiler reports a wrong model here
  static_cast<void>(&author::entered<Model>);
  return app::run(p, argc, argv);
}

}  // namespace edl
