// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"
#include "edl/optim/schedule.hpp"
#include "edl/train/initial_variables.hpp"

namespace edl::detail {

// C++20 cannot list the members of a struct, and a member of no known name would be left out without a word.
// So what members are likely to be misspelt as is looked for by name. A name that a helper of the model may
// have as well counts only where its type is that of the member: a number `learning_rate` may be what the
// optimizer is given, while a function of the version is a schedule.
template <class M>
concept misspells_network = requires { M::netwrok; } || requires { M::netwok; } || requires {
  M::networks;
} || requires { M::net; } || requires { M::layers; } || requires { M::model; };
template <class M>
concept misspells_loss = requires { M::looss; } || requires { M::los; } || requires {
  M::losses;
} || requires { M::loss_function; } || requires { M::loss_fn; } || requires { M::criterion; };
template <class M>
concept misspells_feed = requires { &M::fed; } || requires { &M::feeds; } || requires { &M::feed_record; } ||
                         requires { &M::dataset_fn; };
template <class M>
concept misspells_optimizer = requires { M::optimiser; } || requires { M::optimzer; } || requires {
  M::optimizor;
} || requires { M::optimizers; } || requires { M::optim; } || requires { M::optimizer_fn; };
template <class M>
concept misspells_metrics = requires { typename M::metric; } || requires { typename M::metircs; } ||
                            requires { typename M::metrcs; } || requires { M::metrics_list; } ||
                            requires { M::metric; } || requires { M::eval_metrics_fn; };
template <class M>
concept misspells_schedule =
    requires { M::schedual; } || requires { M::shedule; } || requires { M::schedules; } ||
    requires { M::scheduler; } || requires { M::learning_rate_schedule; } || requires { M::lr_schedule; } ||
    requires { M::lr_scheduler; } ||
    requires { requires learning_rate_schedule<std::decay_t<decltype(M::learning_rate)>>; } ||
    requires { requires learning_rate_schedule<std::decay_t<decltype(M::lr)>>; };
template <class M>
concept misspells_rates =
    requires { M::rate_factors; } || requires { M::part_rates; } || requires { M::learning_rates; };
template <class M>
concept misspells_augmentation = requires { M::augmentations; } || requires { M::agumentation; } ||
                                 requires { M::augmention; } || requires { M::augment; };
template <class M>
concept misspells_evaluation =
    requires { M::evaluations; } || requires { M::evalution; } || requires { M::test_time_augmentation; };
template <class M>
concept misspells_prepare = requires { &M::prepares; } || requires { &M::perpare; } || requires {
  &M::prepear;
} || requires(first_samples const& data, initial_variables& into) { M::init(data, into); };
template <class M>
concept misspells_on_predictions =
    requires { &M::on_prediction; } || requires { &M::on_predict; } || requires { &M::on_predicitons; } ||
    requires { &M::prediction_outputs_processor; } ||
    requires(shape output, view<float> outputs, int worker) { M::predict(output, 1, outputs, worker); };
template <class M>
concept misspells_weight_names =
    requires { M::weights_names; } || requires { M::weight_name; } || requires { M::weightnames; };
template <class M>
concept misspells_hyperparameters = requires { typename M::hyperparams; } || requires {
  typename M::hyper_parameters;
} || requires { typename M::hparams; } || requires { typename M::hyperparameter; };

// Members of other frameworks that have no counterpart.
template <class M>
concept names_callbacks = requires { M::callbacks; };
template <class M>
concept names_regularizer = requires { M::regularizer; } || requires { M::kernel_regularizer; };

/// Whether a number is called as an option of the optimizer, and nothing of the model can read it.
template <class M>
concept names_rate = requires { requires std::is_arithmetic_v<std::decay_t<decltype(M::learning_rate)>>; } ||
                     requires { requires std::is_arithmetic_v<std::decay_t<decltype(M::lr)>>; };

}  // namespace edl::detail
