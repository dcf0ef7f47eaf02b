// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/compute/nn/expression/layer.hpp"
#include "edl/compute/nn/loss/loss.hpp"

namespace edl::nn {

/// A loss of one record: `constexpr auto loss(auto output, auto label) const` takes two tensors, with a label
/// for each output, and returns a tensor that is one number. With `static constexpr bool class_labels = true`
/// the label is the number of a class, one for each record: `one_hot(label, output.channels())`. With `static
/// constexpr int labels = 2` it is a list of so many numbers, `label[0]` and `label[1]`.
template <class L>
concept is_loss_expression = std::copyable<L> && !loss_function<L> &&
                             requires(L const& l, tensor x, expression::label_argument<L> label) {
                               { l.loss(x, label) } -> std::convertible_to<tensor>;
                             };

namespace expression {

template <class L>
constexpr bool is_of_classes() {
  if constexpr (requires { L::class_labels; })
    return L::class_labels;
  else
    return false;
}

template <class L>
inline constexpr bool weighs_classes =
    is_of_classes<L>() && requires(L const& l) { l.class_weights.count(); };

template <class L>
constexpr form loss_form_of(L const& l, shape output) {
  scope s(output);
  label_argument<L> label;
  if constexpr (constexpr std::size_t n = listed_labels<L>(); n > 0)
    for (std::size_t i = 0; i < n; ++i) label[i] = s.label(samples, i);
  else
    label = s.label(is_of_classes<L>() ? samples : all_axes);
  tensor y = l.loss(s.input(), label);
  if constexpr (weighs_classes<L>) y = s.add(operation::multiply, 0, y, s.weight());
  return s.finish(y, true);
}

template <class L>
struct compiled_loss {
  static constexpr form operations = loss_form_of(L{}, {4, 4, 4});
  static constexpr bool right = [] {
    constexpr mistake wrong = operations.wrong;
    if constexpr (!wrong.none()) return sizeof(forward_pass_of<L, wrong>) == 0;
    return true;
  }();
  static constexpr program both = [] {
    program p = right ? scheduler::backward(operations, deriver(operations, true).result()) : program{};
    p.labels = is_of_classes<L>() ? program::a_class : std::int16_t(listed_labels<L>());
    return p;
  }();
};

}  // namespace expression

/// Turns it into a loss function. The loss of a minibatch is the mean over its records, and the compiler
/// derives its gradient. A loss of classes may have an option `nn::class_weights class_weights`, by which a
/// record's loss is multiplied. See `loss_function`.
template <is_loss_expression L>
struct derived_loss {
  static_assert(expression::compiled_loss<L>::right || true);  // it has reported the mistake

  L source;

  static constexpr bool class_labels = expression::is_of_classes<L>();
  static constexpr std::size_t listed = expression::listed_labels<L>();
  static_assert(!class_labels || listed == 0,
                "edl: the label of this loss is either the number of a class (`class_labels`) or a list of "
                "numbers (`labels`), and not both");
  static constexpr bool own_labels = listed > 0;
  static constexpr bool weighs_classes = expression::weighs_classes<L>;
  using label = std::conditional_t<class_labels, std::int32_t, float>;
  static constexpr std::size_t labels(shape output) {
    return class_labels ? 1 : listed > 0 ? listed : output.size();
  }
  static constexpr bool valid(label l, shape output) {
    if constexpr (requires { L::valid(l, output); })
      return L::valid(l, output);
    else if constexpr (class_labels)
      return l >= 0 && l < output.channels;
    else
      return l - l == 0;  // neither infinite nor NaN
  }
  static constexpr bool fits(shape output) { return loss_fits<L>(output); }
  constexpr bool on_host() const {
    if constexpr (weighs_classes)
      return source.class_weights.count() > 0;
    else
      return false;
  }
  constexpr bool options_fit(shape output) const {
    expression::form const f = expression::loss_form_of(source, output);
    if constexpr (weighs_classes)
      if (!source.class_weights.fit(std::size_t(output.channels))) return false;
    return nn::options_fit(source, output) && f.same_operations(expression::compiled_loss<L>::operations);
  }

  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    if (batch == 0) return 0;
    T mean = 0;
    expression::this_thread<T> on;
    view<T> labels;
    if constexpr (listed > 0) {
      auto const wide = on.room(0, 2, truth.size());
      for (std::size_t i = 0; i < truth.size(); ++i)
        wide[i % listed * std::size_t(batch) + i / listed] = T(truth[i]);
      labels = wide;
    } else if constexpr (std::same_as<T, label>) {
      labels = truth;
    } else {
      std::size_t const n = truth.size();
      auto const wide = on.room(0, 2, weighs_classes ? 2 * n : n);
      std::copy(truth.begin(), truth.end(), wide.begin());
      if constexpr (weighs_classes)
        for (std::size_t i = 0; i < n; ++i) {
          bool const known = truth[i] >= 0 && std::size_t(truth[i]) < class_weights::most;
          wide[n + i] = known ? T(source.class_weights[std::size_t(truth[i])]) : T(0);
        }
      labels = wide;
    }
    expression::form const& now = expression::kept_form(
        source, output, [](L const& l, shape of) { return expression::loss_form_of(l, of); });
    expression::run_on<expression::compiled_loss<L>::both, T>(on,
                                                              {now,
                                                               output,
                                                               std::size_t(batch),
                                                               std::span(&outputs, 1),
                                                               {},
                                                               {},
                                                               {&mean, 1},
                                                               std::span<std::span<T> const>(&gradients, 1),
                                                               {},
                                                               {},
                                                               labels});
    return double(mean);
  }
};

template <is_loss_expression L>
sample_weighted(L) -> sample_weighted<derived_loss<L>>;

namespace detail {
template <class L>
struct loss_in_models {
  using type = L;
};
template <is_loss_expression L>
struct loss_in_models<L> {
  using type = derived_loss<L>;
};
}  // namespace detail

/// A loss in the form that models use. (Its return type is explicit, so that the compiler refuses a loss that
/// cannot be copied in one sentence.)
template <class L>
constexpr typename detail::loss_in_models<L>::type as_loss(L const& l) {
  if constexpr (is_loss_expression<L>)
    return derived_loss<L>{l};
  else
    return l;
}

}  // namespace edl::nn
