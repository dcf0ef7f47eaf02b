// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "edl/core/mode.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/data/augment.hpp"
#include "edl/data/reader.hpp"
#include "edl/data/test_time_augmentation.hpp"
#include "edl/nn/loss/loss.hpp"
#include "edl/nn/metric/accuracy.hpp"
#include "edl/nn/metric/list.hpp"
#include "edl/nn/metric/mean_loss.hpp"
#include "edl/optim/optimizer.hpp"
#include "edl/optim/rule.hpp"
#include "edl/optim/schedule.hpp"
#include "edl/optim/sgd.hpp"
#include "edl/train/initial_variables.hpp"

namespace edl {

class example;
template <class Model>
struct sample;

namespace detail {

// Whether a model has a member of a name at all, of whatever kind: a base with the same name makes it
// ambiguous. So an optional member that is there but wrong is reported, not replaced by the default.
struct names_optimizer {
  int optimizer;
};
struct names_metrics {
  int metrics;
};
struct names_schedule {
  int schedule;
};
struct names_augmentation {
  int augmentation;
};
struct names_evaluation {
  int evaluation;
};
struct names_on_predictions {
  int on_predictions;
};
struct names_prepare {
  int prepare;
};
struct names_open {
  int open;
};
template <class Model, class Names>
struct beside : Model, Names {};

template <class Model>
concept derivable = std::is_class_v<Model> && !std::is_final_v<Model>;
template <class Model>
concept has_optimizer = derivable<Model> && !requires { &beside<Model, names_optimizer>::optimizer; };
template <class Model>
concept has_metrics = derivable<Model> && !requires { &beside<Model, names_metrics>::metrics; };
template <class Model>
concept has_schedule = derivable<Model> && !requires { &beside<Model, names_schedule>::schedule; };
template <class Model>
concept has_augmentation =
    derivable<Model> && !requires { &beside<Model, names_augmentation>::augmentation; };
template <class Model>
concept has_evaluation = derivable<Model> && !requires { &beside<Model, names_evaluation>::evaluation; };
template <class Model>
concept has_on_predictions =
    derivable<Model> && !requires { &beside<Model, names_on_predictions>::on_predictions; };

template <class Model>
concept has_prepare = derivable<Model> && !requires { &beside<Model, names_prepare>::prepare; };

template <class Model>
concept has_open = derivable<Model> && !requires { &beside<Model, names_open>::open; };

/// The object can be copied by the compiler: it is static and constexpr.
template <auto const& Object>
concept constant = requires {
  typename std::bool_constant<(static_cast<void>(std::remove_cvref_t<decltype(Object)>(Object)), true)>;
} && std::is_const_v<std::remove_reference_t<decltype(Object)>>;

template <class Model>
concept good_network = requires { requires constant<Model::network>; };

template <class Model>
concept good_loss = requires {
  requires constant<Model::loss>;
  requires nn::loss_function<std::remove_cvref_t<decltype(Model::loss)>>;
};

template <class Model>
concept good_optimizer = requires {
  requires constant<Model::optimizer>;
  requires optimizer<std::remove_cvref_t<decltype(Model::optimizer)>>;
};

template <class>
inline constexpr bool is_metrics = false;
template <class... M>
inline constexpr bool is_metrics<metrics<M...>> = true;
template <class Model>
concept good_metrics = is_metrics<typename Model::metrics>;

template <class Model>
concept good_schedule = requires {
  requires learning_rate_schedule<std::decay_t<decltype(Model::schedule)>>;
} && (std::is_function_v<decltype(Model::schedule)> || requires { requires constant<Model::schedule>; });

template <class Model>
concept good_augmentation = requires {
  requires constant<Model::augmentation>;
  requires augmentation<std::remove_cvref_t<decltype(Model::augmentation)>>;
};

template <class>
inline constexpr bool is_augmentation = false;
template <std::size_t N>
inline constexpr bool is_augmentation<average<N>> = true;

template <class Model>
concept good_evaluation = requires {
  requires constant<Model::evaluation>;
  requires is_augmentation<std::remove_cvref_t<decltype(Model::evaluation)>>;
  requires Model::evaluation.valid();
};

template <class Model>
concept good_feed =
    requires(example const& record, sample<Model>& into, mode m) { Model::feed(record, into, m); };

template <class Model>
concept good_on_predictions = requires(shape output, view<float> outputs, int worker) {
  Model::on_predictions(output, 1, outputs, worker);
};

template <class Model>
concept good_prepare =
    requires(first_samples const& data, initial_variables& into) { Model::prepare(data, into); };

template <class Model>
concept good_open = requires(std::string const& path, data::source_options const& options) {
  { Model::open(path, options) } -> std::convertible_to<std::unique_ptr<data::source>>;
};

/// Stands in for a loss that is missing, so that its absence is the only thing reported.
struct no_loss {
  using label = std::int32_t;
  static constexpr bool class_labels = true;
};

template <class Model>
constexpr auto loss_of() {
  if constexpr (good_loss<Model>)
    return Model::loss;
  else
    return no_loss{};
}

template <class Model>
constexpr auto optimizer_of() {
  if constexpr (good_optimizer<Model>)
    return Model::optimizer;
  else
    return sgd{};
}

template <class Model>
constexpr auto schedule_of() {
  if constexpr (good_schedule<Model>)
    return Model::schedule;
  else
    return constant_rate{float(optimizer_of<Model>().learning_rate)};
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

// Instantiated once per metric, so that the diagnostic names it.
template <class Metric, class Label>
struct metric_takes {
  static_assert(metric_for<Metric, Label>,
                "edl: this metric of the model's `metrics` cannot be computed from the labels of its `loss`");
};
template <class Metrics, class Label>
struct metrics_take;
template <class... M, class Label>
struct metrics_take<metrics<M...>, Label> {
  static_assert(((sizeof(metric_takes<M, Label>) > 0) && ...));
};

}  // namespace detail

/// What a model struct says, with defaults for what it leaves out. Instantiating it checks the members that
/// it reads; each that is missing or wrong is one sentence. `check_model` checks the others.
template <class Model>
struct model_traits {
  static_assert(detail::derivable<Model>, "edl: a model is a struct, and not a final one");
  static_assert(detail::good_network<Model>,
                "edl: the model needs `static constexpr auto network = edl::nn::sequential(...)`");
  static_assert(
      detail::good_loss<Model>,
      "edl: the model needs `static constexpr edl::nn::softmax_cross_entropy loss{}` or another loss");
  static_assert(detail::good_optimizer<Model> || !detail::has_optimizer<Model>,
                "edl: the model's `optimizer` should be `static constexpr edl::sgd optimizer{...}` or "
                "another optimizer");
  static_assert(detail::good_metrics<Model> || !detail::has_metrics<Model>,
                "edl: the model's `metrics` should be `using metrics = edl::metrics<edl::accuracy, ...>`");
  static_assert(
      detail::good_schedule<Model> || !detail::has_schedule<Model>,
      "edl: the model's `schedule` should be `static float schedule(std::uint64_t version)` or a static "
      "constexpr object called like that");

  static_assert(
      detail::good_augmentation<Model> || !detail::has_augmentation<Model>,
      "edl: the model's `augmentation` should be `static constexpr auto augmentation = edl::augment(...)`");

  static_assert(detail::good_evaluation<Model> || !detail::has_evaluation<Model>,
                "edl: the model's `evaluation` should be `static constexpr auto evaluation = "
                "edl::test_time_augmentation(edl::test_time_view{...}, ...)`, with weights of which none is "
                "below 0 and one is above");

  using loss_type = decltype(detail::loss_of<Model>());
  using label = typename loss_type::label;
  using optimizer_type = decltype(detail::optimizer_of<Model>());
  using schedule_type = decltype(detail::schedule_of<Model>());
  using rule_type = rule<optimizer_type, schedule_type>;

  /// The model's, or accuracy for class labels and the mean loss for others.
  using metrics = typename detail::metrics_of<Model, loss_type::class_labels>::type;
  // Labels that nobody has stated are no reason to complain about a metric.
  using judged = std::conditional_t<detail::good_loss<Model>, metrics, edl::metrics<>>;
  static_assert(sizeof(detail::metrics_take<judged, label>) > 0);

  static constexpr loss_type loss = detail::loss_of<Model>();
  static constexpr optimizer_type optimizer = detail::optimizer_of<Model>();

  /// The optimiser (`sgd{}` where the model has none) and the schedule (the optimiser's own rate, likewise).
  static rule_type make_rule() { return {detail::optimizer_of<Model>(), detail::schedule_of<Model>()}; }

  static constexpr bool augments = detail::good_augmentation<Model>;

  /// Whoever computes can augment, instead of whoever feeds.
  static constexpr bool places = [] {
    if constexpr (augments)
      return placing_augmentation<std::remove_cvref_t<decltype(Model::augmentation)>>;
    else
      return false;
  }();

  /// What evaluation and prediction show of a sample; the sample itself where the model says nothing.
  static constexpr auto evaluation = detail::evaluation_of<Model>();
  static constexpr bool averages = detail::good_evaluation<Model>;
  static constexpr bool prepares = detail::good_prepare<Model>;
  static constexpr bool opens = detail::good_open<Model>;
  static constexpr bool takes_predictions = detail::good_on_predictions<Model>;
};

/// Checks the whole struct, functions included:
/// - `static void feed(edl::example const& record, edl::sample<Model>& into, edl::mode)`: one record → one
///   sample;
/// - optional, `static void prepare(edl::first_samples const& data, edl::initial_variables& into)`: sets some
///   variables of a new model by the look of the training data. Every process that keeps variables calls it:
///   equal data, equal values;
/// - optional, `static std::unique_ptr<edl::data::source> open(std::string const& path,
///   edl::data::source_options const& options)`: opens records of a format of its own. Null: the path is not
///   one of these. Every process that reads records calls it;
/// - optional, `static void on_predictions(edl::shape output, int batch, edl::view<float> outputs, int
///   worker)`: takes a minibatch of predictions, batch × output.size() elements, in the process of that
///   worker.
template <class Model>
constexpr void check_model() {
  static_assert(sizeof(model_traits<Model>) > 0);
  static_assert(
      detail::good_feed<Model>,
      "edl: the model needs `static void feed(edl::example const&, edl::sample<Model>&, edl::mode)`");
  static_assert(
      detail::good_on_predictions<Model> || !detail::has_on_predictions<Model>,
      "edl: the model's `on_predictions` should be `static void on_predictions(edl::shape output, int batch, "
      "edl::view<float> outputs, int worker)`");
  static_assert(detail::good_prepare<Model> || !detail::has_prepare<Model>,
                "edl: the model's `prepare` should be `static void prepare(edl::first_samples const& data, "
                "edl::initial_variables& into)`");
  static_assert(detail::good_open<Model> || !detail::has_open<Model>,
                "edl: the model's `open` should be `static std::unique_ptr<edl::data::source> "
                "open(std::string const& path, edl::data::source_options const& options)`");
}

}  // namespace edl
