// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "edl/author/model_members.hpp"
#include "edl/author/model_network.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/recurrent.hpp"
#include "edl/compute/nn/layer/sequential.hpp"
#include "edl/compute/nn/loss/classification.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/compute/nn/metric/list.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/core/options_fit.hpp"

namespace edl::detail {

/// The type of a loss's labels, as metrics read them.
template <class Loss>
using read_labels = std::conditional_t<nn::has_own_labels<Loss>, nn::own_label<typename Loss::label>,
                                       typename nn::unweighted_loss<Loss>::label>;

/// Whether a metric of a model can be computed from the labels of its loss.
template <class Metric, class Label>
inline constexpr bool measures = metric_for<Metric, Label>;
template <class Metric, class Label>
  requires(
              requires { requires Metric::any_labels; } && !requires { typename Metric::measure; })
inline constexpr bool measures<Metric, nn::own_label<Label>> = true;
template <class Metric, class Label>
  requires requires { typename Metric::measure; }
inline constexpr bool measures<Metric, Label> = [] {
  using heads = decltype(Metric::heads::all);
  if constexpr (Metric::index < std::tuple_size_v<heads>)
    return measures<typename Metric::measure,
                    read_labels<typename std::tuple_element_t<Metric::index, heads>::loss_type>>;
  else
    return false;
}();

template <class Metrics, class Label>
inline constexpr bool all_measure = true;
template <class... M, class Label>
inline constexpr bool all_measure<metric_list<M...>, Label> = (measures<M, Label> && ...);

// Instantiated for a metric that cannot, so that the diagnostic names it.
template <class Metric, class Label>
struct metric_takes {
  static constexpr bool whole = metric<Metric>;
  static_assert(sizeof(is_a_metric<Metric>) > 0);
  static_assert(!whole,
                "edl: this metric of the model's `metrics` cannot be computed from the labels of its `loss`");
};
template <class Metric, class Label>
constexpr bool explain_metric() {
  if constexpr (!measures<Metric, Label>) return sizeof(metric_takes<Metric, Label>) > 0;
  return true;
}
template <class Metric, class Label>
  requires requires { typename Metric::measure; }
constexpr bool explain_metric() {
  using heads = decltype(Metric::heads::all);
  constexpr bool there = Metric::index < std::tuple_size_v<heads>;
  static_assert(there, "edl: no head has the name that a metric of the model asks for");
  if constexpr (there && !measures<Metric, Label>)
    return sizeof(metric_takes<typename Metric::measure,
                               read_labels<typename std::tuple_element_t<Metric::index, heads>::loss_type>>) >
           0;
  return true;
}

// Instantiated for a metric of other classes, so that the diagnostic names both.
template <class Metric, std::size_t Classes>
struct metric_of_classes {
  static_assert(
      metric_fits<Metric>(Classes),
      "edl: this metric of the model's `metrics` is for another number of classes than its `network` "
      "has: `metric_of_classes<METRIC, CLASSES>` names both");
};
template <class Metrics, std::size_t Classes>
inline constexpr bool explain_classes = true;
template <class... M, std::size_t Classes>
inline constexpr bool explain_classes<metric_list<M...>, Classes> =
    ((sizeof(metric_of_classes<M, Classes>) > 0) && ...);

template <class Metrics, class Label>
struct metrics_take;
template <class... M, class Label>
struct metrics_take<metric_list<M...>, Label> {
  static_assert((1 & ... & explain_metric<M, Label>()));
};

template <class Model>
concept only_layers = derivable<Model> && requires {
  requires constant<Model::network>;
  requires is_chain<std::remove_cvref_t<decltype(Model::network)>>;
};

// Reports missing parts of each existing member: always true.
template <class Model>
constexpr bool explains_loss() {
  if constexpr (some_loss<Model> && !good_loss<Model>)
    return sizeof(nn::is_a_loss<typename loss_member<Model>::type>) > 0;
  else
    return true;
}
template <class Model>
constexpr bool explains_optimizer() {
  if constexpr (some_optimizer<Model> && !good_optimizer<Model>)
    return sizeof(is_an_optimizer<typename optimizer_member<Model>::type>) > 0;
  else
    return true;
}
template <class Model>
constexpr bool explains_schedule() {
  if constexpr (some_schedule<Model> && !good_schedule<Model>)
    return sizeof(is_a_schedule<typename schedule_member<Model>::type>) > 0;
  else
    return true;
}
template <class Model>
constexpr bool explains_augmentation() {
  if constexpr (some_augmentation<Model> && !good_augmentation<Model>)
    return sizeof(is_an_augmentation<typename augmentation_member<Model>::type>) > 0;
  else
    return true;
}
template <class Loss, class... Of>
constexpr bool is_one_of = (std::is_same_v<Loss, Of> || ...);

// Models that compile and run, but cannot be intended.
template <class Network, class Loss>
struct ends_of_network {};
template <class First, class first, class... Layers, class Loss>
struct ends_of_network<nn::network<First, first, Layers...>, Loss> {
  using last = std::tuple_element_t<sizeof...(Layers), std::tuple<first, Layers...>>;
  static_assert(
      !(std::is_same_v<last, nn::softmax> &&
        is_one_of<Loss, nn::softmax_cross_entropy, nn::sequence_cross_entropy, nn::softmax_focal>) &&
          !(std::is_same_v<last, nn::sigmoid> &&
            is_one_of<Loss, nn::sigmoid_cross_entropy, nn::sigmoid_focal>),
      "edl: the model's loss takes logits and normalises them itself: remove the last layer of its "
      "`network`, `nn::softmax` or `nn::sigmoid`");
  static_assert(
      !(std::is_same_v<First, nn::features> && std::is_base_of_v<nn::detail::recurrent_layer<first>, first>),
      "edl: `nn::features` is a single step for a recurrent layer: begin the model's `network` with "
      "`nn::image{.height = 1, .width = STEPS, .channels = NUMBERS}`");
};

template <class Model>
constexpr bool explains_network() {
  if constexpr (good_network<Model>)
    if constexpr (checked_network<Model::network>::value) {
      if constexpr (!nn::can_compute<Model::network, basic_backend<float>>)
        return nn::explain_network<Model::network, basic_backend<float>>();
      else if constexpr (!whole_network<Model::network>)
        return sizeof(checked_lengths<Model::network>) > 0;
      else if constexpr (good_loss<Model>)
        return sizeof(ends_of_network<std::remove_cv_t<decltype(Model::network)>,
                                      nn::unweighted_loss<typename loss_member<Model>::type>>) > 0 &&
               sizeof(loss_takes<typename loss_member<Model>::type,
                                 Model::network.body.output(Model::network.input)>) > 0 &&
               sizeof(loss_takes_shorter<typename loss_member<Model>::type, Model::network>) > 0;
    }
  return true;
}
template <class Model>
constexpr bool explains_metrics() {
  if constexpr (good_metrics<Model> && good_loss<Model>)
    return sizeof(metrics_take<typename Model::metrics, read_labels<typename loss_member<Model>::type>>) > 0;
  else
    return true;
}

/// Whether the options of a loss that is a constant are in their ranges.
template <class Model>
constexpr bool options_fit() {
  if constexpr (sets_loss<Model>)
    return true;
  else
    return nn::options_fit(nn::as_loss(Model::loss), Model::network.body.output(Model::network.input));
}

/// The same for members that are called without the network. A function of the hyperparameters is checked at
/// run time.
template <class Model>
constexpr bool optimizer_options_fit() {
  if constexpr (good_optimizer<Model> && !sets_optimizer<Model>) return edl::options_fit(Model::optimizer);
  return true;
}
template <class Model>
constexpr bool schedule_options_fit() {
  if constexpr (good_schedule<Model> && !sets_schedule<Model>)
    if constexpr (std::is_class_v<typename schedule_member<Model>::type>)
      return edl::options_fit(Model::schedule);
  return true;
}
template <class Model>
constexpr bool augmentation_options_fit() {
  if constexpr (good_augmentation<Model> && !sets_augmentation<Model>)
    return edl::options_fit(Model::augmentation);
  else
    return true;
}

template <class Model>
constexpr bool explains_options() {
  constexpr bool steps = optimizer_options_fit<Model>(), rates = schedule_options_fit<Model>(),
                 augments = augmentation_options_fit<Model>();
  static_assert(steps,
                "edl: an option of the model's `optimizer` is out of range: rates and decays are 0 or more, "
                "`momentum` and betas less than 1");
  static_assert(rates, "edl: an option of the model's `schedule` is out of range: rates are 0 or more");
  static_assert(augments, "edl: an option of the model's `augmentation` is out of range: it is below 0");
  if constexpr (good_network<Model> && good_loss<Model>)
    if constexpr (whole_network<Model::network>) {
      using loss = typename loss_member<Model>::type;
      constexpr shape output = Model::network.body.output(Model::network.input);
      constexpr bool fit = options_fit<Model>() || !nn::loss_fits<loss>(output);
      static_assert(
          fit,
          "edl: an option of the model's `loss` is out of range, or its `class_weights` are not as many as "
          "its classes");
      if constexpr (good_metrics<Model>)
        if constexpr (all_measure<typename Model::metrics, read_labels<loss>>) {
          constexpr std::size_t classes = output.size() / nn::unweighted_loss<loss>::labels(output);
          static_assert(explain_classes<typename Model::metrics, classes>);
        }
    }
  return true;
}

template <class Model>
constexpr bool has_too_many_hyperparameters = [] {
  if constexpr (std::is_aggregate_v<author::hyperparameters_of<Model>>)
    return author::member_count<author::hyperparameters_of<Model>> > author::most_members;
  else
    return false;
}();

// Common misspellings of members that edl reads: without a diagnostic they would have no effect.
template <class Model>
constexpr bool misspells_metrics =
    requires { typename Model::metric; } || requires { typename Model::Metrics; };
template <class Model>
constexpr bool misspells_optimizer = requires { Model::optimiser; } || requires { Model::optim; };
template <class Model>
constexpr bool misspells_schedule = requires { Model::scheduler; } || requires { Model::schedules; };
template <class Model>
constexpr bool misspells_augmentation = requires { Model::augment; } || requires { Model::augmentations; };

// Instantiated for a model: reports each missing or wrong member in one sentence. Nothing of the struct is
// read, because a compiler may give up on a wrong one.
template <class Model>
struct checked_members {
  static_assert(derivable<Model>, "edl: a model is a struct, and not a final one");
  static_assert(!has_too_many_hyperparameters<Model>, "edl: a model has at most 16 hyperparameters");
  static_assert(author::hyperparameter_struct<author::hyperparameters_of<Model>> ||
                    has_too_many_hyperparameters<Model>,
                "edl: the members of the model's `struct hyperparameters` should be numbers with a default, "
                "or `edl::hyperparameter<float> rate{0.1f, \"its meaning\"}`");
  static_assert(good_network<Model> || only_layers<Model>,
                "edl: the model needs `static constexpr auto network = edl::nn::sequential(...)`");
  static_assert(!only_layers<Model>,
                "edl: the model's `network` does not begin with an input: `edl::nn::image`, "
                "`edl::nn::features`, `edl::nn::ids` or `edl::nn::inputs(...)` comes before the layers");
  static_assert(
      some_loss<Model>,
      "edl: the model needs `static constexpr edl::nn::softmax_cross_entropy loss{}` or another loss");
  static_assert(some_optimizer<Model> || !has_optimizer<Model>,
                "edl: the model's `optimizer` should be `static constexpr edl::sgd optimizer{...}` or "
                "another optimizer");
  static_assert(
      has_metrics<Model> || !misspells_metrics<Model>,
      "edl: the model's metrics are read by the name `metrics`: `using metrics = edl::metrics<...>`");
  static_assert(has_optimizer<Model> || !misspells_optimizer<Model>,
                "edl: the model's optimizer is read by the name `optimizer`");
  static_assert(has_schedule<Model> || !misspells_schedule<Model>,
                "edl: the model's schedule is read by the name `schedule`");
  static_assert(has_augmentation<Model> || !misspells_augmentation<Model>,
                "edl: the model's augmentation is read by the name `augmentation`");
  static_assert(good_metrics<Model> || !has_metrics<Model>,
                "edl: the model's `metrics` should be `using metrics = edl::metrics<edl::accuracy, ...>`");
  static_assert(
      some_schedule<Model> || !has_schedule<Model>,
      "edl: the model's `schedule` should be `static float schedule(std::uint64_t version)` or a static "
      "constexpr object called like that");

  static_assert(good_rates<Model> || !has_rates<Model>,
                "edl: the model's `rates` should be `static constexpr edl::rates rates{{\"conv2d*\", 0.1f}, "
                "...}`, at most 16, with factors above 0");
  static_assert(
      some_augmentation<Model> || !has_augmentation<Model>,
      "edl: the model's `augmentation` should be `static constexpr auto augmentation = edl::augment(...)`");

  static_assert(good_evaluation<Model> || !has_evaluation<Model>,
                "edl: the model's `evaluation` should be `static constexpr auto evaluation = "
                "edl::test_time_augmentation(edl::test_time_view{...}, ...)`, with weights of which none is "
                "below 0 and one is above, and a share above 0 and at most 1");

  static_assert(!augments_pictures<Model> || of_pictures<Model>,
                "edl: the model's `augmentation` changes pictures, and its `network` does not begin with "
                "`edl::nn::image`");
  static_assert(
      !good_evaluation<Model> || of_pictures<Model>,
      "edl: the model's `evaluation` shows views of a picture, and its `network` does not begin with "
      "`edl::nn::image`");

  // Parts of the model's own types, and whether its members fit together.
  static_assert(explains_loss<Model>() && explains_optimizer<Model>() && explains_schedule<Model>() &&
                explains_augmentation<Model>() && explains_network<Model>() && explains_metrics<Model>() &&
                explains_options<Model>());
};

}  // namespace edl::detail
