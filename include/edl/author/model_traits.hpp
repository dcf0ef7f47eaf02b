// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "edl/author/hyperparameters.hpp"
#include "edl/author/model_members.hpp"
#include "edl/author/model_sentences.hpp"
#include "edl/compute/data/augment.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/compute/data/test_time_augmentation.hpp"
#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/compute/nn/metric/classification.hpp"
#include "edl/compute/nn/metric/list.hpp"
#include "edl/compute/nn/metric/regression.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/compute/optim/schedule.hpp"
#include "edl/core/layout.hpp"

namespace edl {
namespace detail {

template <class Model>
constexpr auto loss_of(author::hyperparameters_of<Model> const& h) {
  if constexpr (sets_loss<Model> && good_loss<Model>)
    return nn::as_loss(Model::loss(h));
  else if constexpr (good_loss<Model> && requires { Model::loss.with(hyperparameter_view(h)); })
    return Model::loss.with(hyperparameter_view(h));
  else if constexpr (good_loss<Model>)
    return nn::as_loss(Model::loss);
  else
    return nn::no_loss{};
}

template <class Model>
constexpr auto optimizer_of(author::hyperparameters_of<Model> const& h) {
  if constexpr (sets_optimizer<Model> && good_optimizer<Model>)
    return Model::optimizer(h);
  else if constexpr (good_optimizer<Model>)
    return Model::optimizer;
  else
    return sgd{};
}

template <class Model>
constexpr auto schedule_of(author::hyperparameters_of<Model> const& h) {
  if constexpr (sets_schedule<Model> && good_schedule<Model>)
    return Model::schedule(h);
  else if constexpr (good_schedule<Model>)
    return Model::schedule;
  else
    return constant_rate{float(optimizer_of<Model>(h).learning_rate)};
}

template <class Model>
constexpr rates rates_of(author::hyperparameters_of<Model> const& h) {
  if constexpr (sets_rates<Model>)
    return Model::rates(h);
  else if constexpr (good_rates<Model>)
    return Model::rates;
  else
    return {};
}

template <class Model>
auto augmentation_of(author::hyperparameters_of<Model> const& h) {
  if constexpr (sets_augmentation<Model> && good_augmentation<Model>)
    return Model::augmentation(h);
  else if constexpr (good_augmentation<Model>)
    return Model::augmentation;
  else
    return author::no_hyperparameters{};
}

template <class Model>
constexpr auto evaluation_of() {
  if constexpr (good_evaluation<Model>)
    return Model::evaluation;
  else
    return test_time_augmentation(test_time_view{});
}

template <class Model, bool ClassLabels>
struct metrics_of {
  using type = std::conditional_t<ClassLabels, metrics<accuracy>, metrics<mean_loss>>;
};
template <good_metrics Model, bool ClassLabels>
struct metrics_of<Model, ClassLabels> {
  using type = typename Model::metrics;
};

}  // namespace detail

/// The members of a model struct, with defaults for missing ones. Instantiation checks the members that it
/// reads, and reports each missing or wrong one in one sentence. `check_model` checks the others.
template <class Model>
struct model_traits {
  using hyperparameters = author::hyperparameters_of<Model>;
  using loss_type = decltype(detail::loss_of<Model>(hyperparameters{}));
  using unweighted_loss = nn::unweighted_loss<loss_type>;  ///< what a sample's `label` is for
  using label = typename unweighted_loss::label;
  using optimizer_type = decltype(detail::optimizer_of<Model>(hyperparameters{}));
  using schedule_type = decltype(detail::schedule_of<Model>(hyperparameters{}));
  using augmentation_type = decltype(detail::augmentation_of<Model>(hyperparameters{}));
  using rule_type = rule<optimizer_type, schedule_type>;

  /// The model's, or accuracy for class labels and the mean loss for others.
  using metrics = typename detail::metrics_of<Model, unweighted_loss::class_labels &&
                                                         !nn::has_own_labels<loss_type>>::type;

  /// Whether all members that this reads are right and fit together. If not, the compiler has reported why,
  /// and nothing else of the model is compiled.
  static constexpr bool whole = [] {
    if constexpr (sizeof(detail::checked_members<Model>) > 0 &&
                  author::hyperparameter_struct<hyperparameters> && detail::good_network<Model> &&
                  detail::good_loss<Model> && detail::good_options<Model>)
      if constexpr (detail::whole_network<Model::network>)
        return nn::loss_fits<loss_type>(Model::network.body.output(Model::network.input)) &&
               detail::loss_takes_lengths<loss_type, Model::network>() &&
               detail::all_measure<metrics, detail::read_labels<loss_type>> &&
               metrics::fit(Model::network.body.output(Model::network.input).size() /
                            unweighted_loss::labels(Model::network.body.output(Model::network.input))) &&
               detail::options_fit<Model>() && detail::optimizer_options_fit<Model>() &&
               detail::schedule_options_fit<Model>() && detail::augmentation_options_fit<Model>();
    return false;
  }();

  /// The optimiser (default `sgd{}`) and the schedule (default: the optimiser's own rate), for the variables
  /// of the network.
  static rule_type make_rule(hyperparameters const& h = {}, parameter_layout const& of = {}) {
    return {detail::optimizer_of<Model>(h), detail::schedule_of<Model>(h), of};
  }

  static constexpr bool augments = detail::good_augmentation<Model>;

  /// Whether the compute device can augment, instead of the loader threads.
  static constexpr bool places = [] {
    if constexpr (augments)
      return placing_augmentation<augmentation_type>;
    else
      return false;
  }();

  /// The views of a sample in evaluation and prediction; by default the sample itself.
  static constexpr auto evaluation = detail::evaluation_of<Model>();
  static constexpr bool averages = detail::good_evaluation<Model>;
  static constexpr bool prepares = detail::good_prepare<Model>;
  static constexpr bool names_weights = detail::good_weight_names<Model>;
  static constexpr bool opens = detail::good_open<Model>;
  static constexpr bool takes_predictions = detail::good_on_predictions<Model>;
};

/// Checks the whole struct, functions included:
/// - `static void feed(edl::example const& record, edl::sample<Model>& into, edl::mode)`: one record → one
///   sample;
/// - optional, `static void prepare(edl::first_samples const& data, edl::initial_variables& into)`: sets some
///   variables of a new model from the training data. Every process that stores variables calls it: equal
///   data give equal values;
/// - optional, `static constexpr edl::weight_name weight_names[]`: names of the model's variables in files of
///   other programs, see `weight_name`;
/// - optional, `static std::unique_ptr<edl::data::source> open(std::string const& path,
///   edl::data::source_options const& options)`: opens records of the model's own format. Null: the path has
///   another format. Every process that reads records calls it;
/// - optional, `static void on_predictions(edl::shape output, int batch, edl::view<float> outputs, int
///   worker)`: receives predictions, batch × output.size() elements, in the worker's process. A fifth
///   parameter `edl::view<std::uint64_t> records` gets each record's number in the data;
/// - optional, `static void on_step(edl::step_report const&)`: called after each minibatch, in the process
/// that
///   trained it;
/// - optional, `static void on_evaluation(edl::evaluation_report const&)`: called after each evaluation, in
/// the
///   master's process. It may return a `std::string`: why the job must stop, or empty.
template <class Model>
constexpr void check_model() {
  static_assert(sizeof(model_traits<Model>) > 0 && (model_traits<Model>::whole || true));
  constexpr bool feeds = detail::good_feed<Model>, has_feed = detail::has_feed<Model>;
  constexpr bool member = !feeds && detail::feeds_unless_static<Model>;
  constexpr bool copy = !feeds && detail::feeds_a_copy<Model>;
  static_assert(
      has_feed || !detail::derivable<Model>,
      "edl: the model needs `static void feed(edl::example const&, edl::sample<Model>&, edl::mode)`");
  static_assert(!member, "edl: the model's `feed` is not static: `static void feed(...)`");
  static_assert(!copy,
                "edl: the model's `feed` takes its sample by value, so its writes are lost: "
                "`edl::sample<Model>& into`");
  static_assert(feeds || !has_feed || member || copy,
                "edl: the model's `feed` should be `static void feed(edl::example const& record, "
                "edl::sample<Model>& into, edl::mode)`, where `Model` is the model's own name");
  if constexpr (model_traits<Model>::whole) {
    constexpr bool all_read = nn::reads_all_inputs(Model::network);
    static_assert(all_read,
                  "edl: no layer of the model's `network` reads one of its inputs: `in.from<\"name\">(...)` "
                  "begins a branch with it");
    constexpr bool defaults_fit = author::detail::defaults_fit<author::hyperparameters_of<Model>>();
    static_assert(defaults_fit,
                  "edl: the default of a hyperparameter of the model is not within its own bounds");
  }
  static_assert(
      detail::good_on_predictions<Model> || !detail::has_on_predictions<Model>,
      "edl: the model's `on_predictions` should be `static void on_predictions(edl::shape output, int batch, "
      "edl::view<float> outputs, int worker)`");
  static_assert(detail::good_on_step<Model> || !detail::has_on_step<Model>,
                "edl: the model's `on_step` should be `static void on_step(edl::step_report const& step)`");
  static_assert(
      detail::good_on_evaluation<Model> || !detail::has_on_evaluation<Model>,
      "edl: the model's `on_evaluation` should be `static void on_evaluation(edl::evaluation_report "
      "const& report)`, or return a `std::string`: why the job must stop, or empty");
  static_assert(detail::good_prepare<Model> || !detail::has_prepare<Model>,
                "edl: the model's `prepare` should be `static void prepare(edl::first_samples const& data, "
                "edl::initial_variables& into)`");
  static_assert(
      detail::good_weight_names<Model> || !detail::has_weight_names<Model>,
      "edl: the model's `weight_names` should be `static constexpr edl::weight_name weight_names[] = "
      "{{their name, name of the variable, order}, ...}`");
  static_assert(detail::good_open<Model> || !detail::has_open<Model>,
                "edl: the model's `open` should be `static std::unique_ptr<edl::data::source> "
                "open(std::string const& path, edl::data::source_options const& options)`");
}

/// Whether `check_model` finds no mistake.
template <class Model>
inline constexpr bool is_whole = model_traits<Model>::whole && detail::good_functions<Model>;

}  // namespace edl
