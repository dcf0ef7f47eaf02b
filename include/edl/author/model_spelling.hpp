// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl::detail {

// C++20 cannot list the members of a struct, and a member of no known name would be left out without a word.
// So what members are likely to be misspelt as is looked for by name.
template <class M>
concept misspells_network = requires { M::netwrok; } || requires { M::netwok; } ||
                            requires { M::networks; } || requires { M::net; } || requires { M::layers; };
template <class M>
concept misspells_loss = requires { M::looss; } || requires { M::los; } || requires { M::losses; } ||
                         requires { M::loss_function; };
template <class M>
concept misspells_feed = requires { &M::fed; } || requires { &M::feeds; } || requires { &M::feed_record; } ||
                         requires { &M::dataset_fn; };
template <class M>
concept misspells_optimizer = requires { M::optimiser; } || requires { M::optimzer; } || requires {
  M::optimizor;
} || requires { M::optimizers; } || requires { M::optim; };
template <class M>
concept misspells_metrics = requires { typename M::metric; } || requires { typename M::metircs; } ||
                            requires { typename M::metrcs; } || requires { M::metrics_list; };
template <class M>
concept misspells_schedule = requires { M::schedual; } || requires { M::shedule; } || requires {
  M::schedules;
} || requires { M::scheduler; } || requires { M::learning_rate_schedule; };
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
concept misspells_prepare =
    requires { &M::prepares; } || requires { &M::perpare; } || requires { &M::prepear; };
template <class M>
concept misspells_on_predictions =
    requires { &M::on_prediction; } || requires { &M::on_predict; } || requires { &M::on_predicitons; };

}  // namespace edl::detail
