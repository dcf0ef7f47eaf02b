// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "edl/author/hyperparameters.hpp"
#include "edl/author/model_network.hpp"
#include "edl/base/checkpoint/weight_name.hpp"
#include "edl/compute/data/augment.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/compute/data/test_time_augmentation.hpp"
#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/loss/loss.hpp"
#include "edl/compute/nn/metric/list.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/optim/schedule.hpp"
#include "edl/core/mode.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/job/train/setup/hooks.hpp"
#include "edl/job/train/setup/initial_variables.hpp"

namespace edl {

class example;
template <class Model>
struct sample;

namespace detail {

// Whether a model has any member of a name: a base with the same name makes it ambiguous. So a wrong optional
// member is reported, not replaced by the default.
struct names_feed {
  int feed;
};
struct names_optimizer {
  int optimizer;
};
struct names_metrics {
  int metrics;
};
struct names_schedule {
  int schedule;
};
struct names_rates {
  int rates;
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
struct names_on_step {
  int on_step;
};
struct names_on_evaluation {
  int on_evaluation;
};
struct names_prepare {
  int prepare;
};
struct names_open {
  int open;
};
struct names_weight_names {
  int weight_names;
};
template <class Model, class Names>
struct beside : Model, Names {};

template <class Model>
concept derivable = std::is_class_v<Model> && !std::is_final_v<Model>;
template <class Model>
concept has_network = derivable<Model> && requires { Model::network; };
template <class Model>
concept has_loss = derivable<Model> && requires { Model::loss; };
template <class Model>
concept has_feed = derivable<Model> && !requires { &beside<Model, names_feed>::feed; };
template <class Model>
concept has_optimizer = derivable<Model> && !requires { &beside<Model, names_optimizer>::optimizer; };
template <class Model>
concept has_metrics = derivable<Model> && !requires { &beside<Model, names_metrics>::metrics; };
template <class Model>
concept has_schedule = derivable<Model> && !requires { &beside<Model, names_schedule>::schedule; };
template <class Model>
concept has_rates = derivable<Model> && !requires { &beside<Model, names_rates>::rates; };
template <class Model>
concept has_augmentation =
    derivable<Model> && !requires { &beside<Model, names_augmentation>::augmentation; };
template <class Model>
concept has_evaluation = derivable<Model> && !requires { &beside<Model, names_evaluation>::evaluation; };
template <class Model>
concept has_on_predictions =
    derivable<Model> && !requires { &beside<Model, names_on_predictions>::on_predictions; };

template <class Model>
concept has_on_step = derivable<Model> && !requires { &beside<Model, names_on_step>::on_step; };

template <class Model>
concept has_on_evaluation =
    derivable<Model> && !requires { &beside<Model, names_on_evaluation>::on_evaluation; };

template <class Model>
concept has_prepare = derivable<Model> && !requires { &beside<Model, names_prepare>::prepare; };

template <class Model>
concept has_hyperparameters = derivable<Model> && requires { typename Model::hyperparameters; };

template <class Model>
concept has_open = derivable<Model> && !requires { &beside<Model, names_open>::open; };

/// Copies an object. GCC 12 does not instantiate a copy constructor that only a `requires` needs.
template <class T>
constexpr T copy_of(T const& object) {
  return object;
}

/// The compiler can copy the object: it is static and constexpr.
template <auto const& Object>
concept constant = requires { typename std::bool_constant<(static_cast<void>(copy_of(Object)), true)>; } &&
                   std::is_const_v<std::remove_reference_t<decltype(Object)>>;

template <class Model>
concept good_network = requires {
  requires constant<Model::network>;
  requires is_network<std::remove_cvref_t<decltype(Model::network)>>;
};

// These members are constants, or functions of the hyperparameters that give one.
template <class Model>
concept sets_loss = requires(author::hyperparameters_of<Model> const& h) {
  requires std::is_class_v<decltype(Model::loss(h))>;
};
template <class Model>
struct loss_member {
  using type = decltype(nn::as_loss(Model::loss));
};
template <sets_loss Model>
struct loss_member<Model> {
  using type = decltype(nn::as_loss(Model::loss(std::declval<author::hyperparameters_of<Model> const&>())));
};

template <class Model>
concept sets_optimizer = requires(author::hyperparameters_of<Model> const& h) {
  requires std::is_class_v<decltype(Model::optimizer(h))>;
};
template <class Model>
struct optimizer_member {
  using type = std::decay_t<decltype(Model::optimizer)>;
};
template <sets_optimizer Model>
struct optimizer_member<Model> {
  using type = decltype(Model::optimizer(std::declval<author::hyperparameters_of<Model> const&>()));
};

template <class Model>
concept sets_schedule = requires(author::hyperparameters_of<Model> const& h) {
  requires std::is_class_v<decltype(Model::schedule(h))>;
};
template <class Model>
struct schedule_member {
  using type = std::decay_t<decltype(Model::schedule)>;
};
template <sets_schedule Model>
struct schedule_member<Model> {
  using type = decltype(Model::schedule(std::declval<author::hyperparameters_of<Model> const&>()));
};

template <class Model>
concept sets_rates = requires(author::hyperparameters_of<Model> const& h) {
  requires std::same_as<decltype(Model::rates(h)), rates>;
};

template <class Model>
concept sets_augmentation = requires(author::hyperparameters_of<Model> const& h) {
  requires std::is_class_v<decltype(Model::augmentation(h))>;
};
template <class Model>
struct augmentation_member {
  using type = std::decay_t<decltype(Model::augmentation)>;
};
template <sets_augmentation Model>
struct augmentation_member<Model> {
  using type = decltype(Model::augmentation(std::declval<author::hyperparameters_of<Model> const&>()));
};

// A constant of class type may lack a part, which the compiler then reports.
template <class Model>
concept some_loss = sets_loss<Model> || requires {
  requires constant<Model::loss>;
  requires std::is_class_v<std::remove_cvref_t<decltype(Model::loss)>>;
};
template <class Model>
concept good_loss = some_loss<Model> && nn::loss_function<typename loss_member<Model>::type>;

template <class Model>
concept some_optimizer = sets_optimizer<Model> || requires {
  requires constant<Model::optimizer>;
  requires std::is_class_v<std::remove_cvref_t<decltype(Model::optimizer)>>;
};
template <class Model>
concept good_optimizer = some_optimizer<Model> && optimizer<typename optimizer_member<Model>::type>;

template <class>
inline constexpr bool is_metrics = false;
template <class... M>
inline constexpr bool is_metrics<metric_list<M...>> = true;
template <class Model>
concept good_metrics = is_metrics<typename Model::metrics>;

template <class Model>
concept some_schedule = sets_schedule<Model> || requires {
  requires std::is_function_v<std::remove_reference_t<decltype(Model::schedule)>>;
} || requires {
  requires constant<Model::schedule>;
  requires std::is_class_v<std::remove_cvref_t<decltype(Model::schedule)>>;
};
template <class Model>
concept good_schedule = some_schedule<Model> && learning_rate_schedule<typename schedule_member<Model>::type>;

template <class Model>
concept constant_rates = requires {
  requires constant<Model::rates>;
  requires std::same_as<std::remove_cvref_t<decltype(Model::rates)>, rates>;
  requires Model::rates.valid();
};
template <class Model>
concept good_rates = sets_rates<Model> || constant_rates<Model>;

template <class Model>
concept some_augmentation = sets_augmentation<Model> || requires {
  requires constant<Model::augmentation>;
  requires std::is_class_v<std::remove_cvref_t<decltype(Model::augmentation)>>;
};
template <class Model>
concept good_augmentation =
    some_augmentation<Model> && augmentation<typename augmentation_member<Model>::type>;

template <class Model>
concept of_pictures =
    !good_network<Model> || begins_with_picture<std::remove_cvref_t<decltype(Model::network)>>;
template <class Model>
concept augments_pictures =
    some_augmentation<Model> && changes_pictures<typename augmentation_member<Model>::type>;

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
concept feeds_unless_static =
    requires(Model m, example const& record, sample<Model>& into, mode what) { m.feed(record, into, what); };
template <class Model>
concept feeds_a_copy = requires(example const& record, sample<Model> (*into)(), mode what) {
  Model::feed(record, into(), what);
};

template <class Model>
concept hears_of_records =
    requires(shape output, view<float> outputs, int worker, view<std::uint64_t> records) {
      Model::on_predictions(output, 1, outputs, worker, records);
    };
template <class Model>
concept good_on_predictions =
    hears_of_records<Model> || requires(shape output, view<float> outputs, int worker) {
      Model::on_predictions(output, 1, outputs, worker);
    };

template <class Model>
concept good_on_step = requires(step_report const& step) {
  { Model::on_step(step) } -> std::same_as<void>;
};

template <class Model>
concept may_stop = requires(evaluation_report const& of) {
  { Model::on_evaluation(of) } -> std::same_as<std::string>;
};
template <class Model>
concept good_on_evaluation = may_stop<Model> || requires(evaluation_report const& of) {
  { Model::on_evaluation(of) } -> std::same_as<void>;
};

template <class Model>
concept good_prepare =
    requires(first_samples const& data, initial_variables& into) { Model::prepare(data, into); };

// An optional member is right if it exists and is valid, or does not exist.
template <class Model>
inline constexpr bool good_options = [] {
  bool const optimizes = good_optimizer<Model> || !has_optimizer<Model>;
  bool const measures = good_metrics<Model> || !has_metrics<Model>;
  bool const schedules = good_schedule<Model> || !has_schedule<Model>;
  bool const rated = good_rates<Model> || !has_rates<Model>;
  bool const augments = good_augmentation<Model> || !has_augmentation<Model>;
  bool const evaluates = good_evaluation<Model> || !has_evaluation<Model>;
  bool const views = augments_pictures<Model> || good_evaluation<Model>;
  return optimizes && measures && schedules && rated && augments && evaluates &&
         (of_pictures<Model> || !views);
}();

template <class Model>
concept good_open = requires(std::string const& path, data::source_options const& options) {
  { Model::open(path, options) } -> std::convertible_to<std::unique_ptr<data::source>>;
};

template <class Model>
concept has_weight_names =
    derivable<Model> && !requires { &beside<Model, names_weight_names>::weight_names; };
template <class Model>
concept good_weight_names = requires { std::span<weight_name const>(Model::weight_names); };

template <class Model>
inline constexpr bool good_functions = [] {
  bool const names = good_weight_names<Model> || !has_weight_names<Model>;
  bool const opens = good_open<Model> || !has_open<Model>;
  bool const takes = good_on_predictions<Model> || !has_on_predictions<Model>;
  bool const prepares = good_prepare<Model> || !has_prepare<Model>;
  bool const hooks = (good_on_step<Model> || !has_on_step<Model>) &&
                     (good_on_evaluation<Model> || !has_on_evaluation<Model>);
  return good_feed<Model> && names && opens && takes && prepares && hooks;
}();

}  // namespace detail
}  // namespace edl
