// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "edl/compute/nn/expression/tensor.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

namespace expression {

/// How many numbers the label of a loss that is an expression lists; 0: it lists none.
template <class L>
constexpr std::size_t listed_labels() {
  if constexpr (requires { requires std::integral<std::remove_cvref_t<decltype(L::labels)>>; }) {
    static_assert(L::labels > 0, "edl: the label of this loss lists no number: `labels` is at least 1");
    return L::labels > 0 ? std::size_t(L::labels) : 1;
  } else {
    return 0;
  }
}
/// What the function of such a loss takes as its label.
template <class L, std::size_t N = listed_labels<L>()>
using label_argument = std::conditional_t<(N > 0), std::array<tensor, N>, tensor>;

}  // namespace expression

/// A loss is a value that computes, from labels and outputs, the mean over the batch and its gradient. Its
/// members define its labels, from which samples, metrics and readers follow:
/// - `label`: `std::int32_t` for classes, `float` for quantities;
/// - `class_labels`: labels are classes, and metrics compare them with the largest output;
/// - `labels(output)`: labels per sample, for a network with outputs of this shape;
/// - `valid(label, output)`: whether one label can be used. Callers check this before they call the loss or a
///   metric, which do not check again;
/// - `operator()(output, batch, outputs, truth, gradients)`: `outputs` has batch × output.size() elements,
///   `truth` batch × labels(output) labels. Returns the mean loss per sample, 0 for an empty batch. It
///   overwrites `gradients`, unless it is empty, with the derivative of that mean with respect to the
///   outputs. Allocates
///   nothing.
///
/// Optional members:
/// - `options_fit(output)`: whether the loss's options are in their ranges; if not, the model does not
///   compile;
/// - `on_host()`: whether these options require the host to compute it;
/// - `own_labels` = true: labels are neither classes of the outputs nor one quantity for each. Then only
///   metrics that declare `any_labels`, or that use no labels, can be computed;
/// - `whole_batch` = true: samples are compared with each other, so it cannot be a head's loss.
template <class L>
concept loss_function =
    std::copy_constructible<L> && std::same_as<std::remove_cvref_t<decltype(L::class_labels)>, bool> &&
    (std::same_as<typename L::label, std::int32_t> || std::same_as<typename L::label, float>) &&
    requires(L const loss, shape output, view<float> outputs, view<typename L::label> truth,
             std::span<float> gradients) {
      { L::labels(output) } -> std::same_as<std::size_t>;
      { L::valid(typename L::label{}, output) } -> std::same_as<bool>;
      { loss(output, 1, outputs, truth, gradients) } -> std::convertible_to<double>;
      typename std::bool_constant<(L::labels(shape{1, 1, 2}), true)>;
      requires !L::class_labels || std::same_as<typename L::label, std::int32_t>;
    };

/// Instantiated for the loss of a model or of a head, so that the compiler's message names it. Reports each
/// missing part in one sentence.
template <class L>
struct is_a_loss {
  static constexpr bool copies = std::copy_constructible<L>;
  static constexpr bool has_label = requires { requires std::same_as<typename L::label, std::int32_t>; } ||
                                    requires { requires std::same_as<typename L::label, float>; };
  static constexpr bool has_class_labels =
      requires { requires std::same_as<std::remove_cvref_t<decltype(L::class_labels)>, bool>; };
  static constexpr bool has_labels = requires(shape output) {
    { L::labels(output) } -> std::same_as<std::size_t>;
  } && requires { typename std::bool_constant<(L::labels(shape{1, 1, 2}), true)>; };

  // Members that take labels are checked only if the label type is known.
  template <class One>
  static constexpr bool validates = requires(shape output) {
    { One::valid(typename One::label{}, output) } -> std::same_as<bool>;
  };
  template <class One>
  static constexpr bool computes = requires(One const loss, shape output, view<float> outputs,
                                            view<typename One::label> truth, std::span<float> gradients) {
    { loss(output, 1, outputs, truth, gradients) } -> std::convertible_to<double>;
  };
  static constexpr bool of_floats = [] {
    if constexpr (has_label && has_class_labels)
      return bool(L::class_labels) && std::same_as<typename L::label, float>;
    else
      return false;
  }();
  static constexpr bool expresses =
      requires(L const& l, tensor x, expression::label_argument<L> label) { l.loss(x, label); };
  static constexpr bool almost =
      !expresses &&
      (requires(L& l, tensor x) { l.loss(x, x); } || requires(L const& l, tensor x) { l.loss(x, 0); });
  static constexpr bool has_valid = !has_label || validates<L>, has_call = !has_label || computes<L>;

  static_assert(copies, "edl: this loss cannot be copied");
  static_assert(!expresses, "edl: the `loss(auto output, auto label) const` of this loss returns no tensor");
  static_assert(
      !almost,
      "edl: an expression of a loss is `constexpr auto loss(auto output, auto label) const` of tensors");
  static_assert(has_label || expresses || almost,
                "edl: this loss has no `label`: `using label = std::int32_t;` for classes, `using label = "
                "float;` for numbers, and no other type");
  static_assert(
      has_class_labels || expresses || almost,
      "edl: this loss has no `static constexpr bool class_labels`: true where a label is the number "
      "of an output");
  static_assert(has_labels || expresses || almost,
                "edl: this loss has no `static constexpr std::size_t labels(edl::shape output)`: how many "
                "labels a sample has");
  static_assert(has_valid,
                "edl: this loss has no `static bool valid(label, edl::shape output)`: whether a label can be "
                "used");
  static_assert(
      has_call,
      "edl: this loss has no call `double operator()(edl::shape output, int batch, edl::view<float> "
      "outputs, edl::view<label> truth, std::span<float> gradients) const`");
  static_assert(!of_floats,
                "edl: this loss has `class_labels` and a `label` of float; classes are `std::int32_t`");
};

/// Whether a loss can be computed from outputs of that shape. It defines `fits(output)` unless all shapes are
/// valid.
template <class Loss>
constexpr bool loss_fits(shape output) {
  if constexpr (requires { Loss::fits(output); })
    return Loss::fits(output);
  else
    return true;
}

/// Whether a loss's options are in their ranges, for a network with this output.
template <class Loss>
constexpr bool options_fit(Loss const& loss, shape output) {
  if constexpr (requires { loss.options_fit(output); })
    return loss.options_fit(output);
  else
    return true;
}

/// Replaces an incomplete loss, so that nothing else is reported.
struct no_loss {
  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape) { return 1; }
  static constexpr bool valid(label, shape) { return true; }
  double operator()(auto&&...) const { return 0; }
};

template <class Loss>
constexpr bool has_own_labels = requires { requires Loss::own_labels; };

template <class Loss>
constexpr bool needs_whole_batch = requires { requires Loss::whole_batch; };

/// Labels of this type that only metrics without labels accept.
template <class Label>
struct own_label {};

/// The weight of each class, from the first: `.class_weights = {1, 1, 5}`. At most 64; if empty, every weight
/// is 1. The loss of a sample is multiplied by the weight of its class. The mean still divides by the number
/// of samples, as Keras does, so that minibatches add up.
class class_weights {
 public:
  static constexpr std::size_t most = 64;

  constexpr class_weights() = default;
  template <class... Weight>
    requires(sizeof...(Weight) > 0 && sizeof...(Weight) <= most &&
             (std::convertible_to<Weight, float> && ...))
  constexpr explicit(false) class_weights(Weight... weights)
      : weights_{float(weights)...}, count_(sizeof...(weights)) {}

  constexpr std::size_t count() const { return count_; }
  constexpr float operator[](std::size_t label) const { return count_ == 0 ? 1 : weights_[label]; }

  /// Whether it is empty, or has one finite, non-negative weight for each of this many classes.
  constexpr bool fit(std::size_t classes) const {
    bool good = count_ == 0 || count_ == classes;
    for (std::size_t i = 0; i < count_; ++i)
      good = good && weights_[i] >= 0 && weights_[i] - weights_[i] == 0;
    return good;
  }

 private:
  std::array<float, most> weights_{};
  std::size_t count_ = 0;
};

/// Another loss with a weight per sample: `into.weight` in `feed`, by default 1. The loss of each sample is
/// multiplied by its weight. The mean still divides by the number of samples, as `class_weights` and Keras's
/// `sample_weight` do, so that minibatches add up. A sample of weight 0 is left out. The weight follows the
/// sample's labels, which are floats even for classes. It is computed sample by sample, on the host.
template <class Loss>
struct sample_weighted {
  static_assert(sizeof(is_a_loss<Loss>) > 0);
  static constexpr bool by_samples =
      !needs_whole_batch<Loss> && !requires { Loss::ignored; } && !requires { Loss::all_labels; };
  static_assert(by_samples,
                "edl: `nn::sample_weighted` is for losses of samples one by one: not for `nn::heads`, "
                "`nn::sequence_cross_entropy` and `nn::triplet`");

  Loss loss;

  using label = float;
  static constexpr bool class_labels = false, own_labels = has_own_labels<Loss>;
  static constexpr std::size_t labels(shape output) { return Loss::labels(output) + 1; }
  static constexpr bool fits(shape output) { return loss_fits<Loss>(output); }
  constexpr bool options_fit(shape output) const { return nn::options_fit(loss, output); }

  static constexpr bool valid_weight(float weight) { return weight >= 0 && weight - weight == 0; }

  /// Whether it is a valid label or a valid weight; the overload below knows which.
  static constexpr bool valid(float l, shape output) { return valid_weight(l) || valid_label(l, output, 0); }
  static constexpr bool valid(float l, shape output, std::size_t place) {
    return place < Loss::labels(output) ? valid_label(l, output, place) : valid_weight(l);
  }

  /// See `loss_function`. Every label must be `valid` for its place.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = output.size(), each = labels(output);
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      auto const slope = gradients.empty() ? gradients : gradients.subspan(i * n, n);
      float const weight = truth[i * each + each - 1];
      if (weight == 0) {
        std::ranges::fill(slope, T(0));
        continue;
      }
      auto const one = [&](auto labels_of_sample) {
        return loss(output, 1, outputs.subspan(i * n, n), labels_of_sample, slope);
      };
      if constexpr (std::same_as<typename Loss::label, std::int32_t>) {
        auto const own = std::int32_t(truth[i * each]);
        total += double(weight) * one(view<std::int32_t>(&own, 1));
      } else {
        total += double(weight) * one(truth.subspan(i * each, each - 1));
      }
      for (T& d : slope) d *= T(weight) / T(batch);
    }
    return batch > 0 ? total / batch : 0;
  }

 private:
  static constexpr bool valid_label(float l, shape output, [[maybe_unused]] std::size_t place) {
    if constexpr (std::same_as<typename Loss::label, std::int32_t>)
      return l >= 0 && double(l) <= double(std::numeric_limits<std::int32_t>::max()) &&
             l == float(std::int32_t(l)) && Loss::valid(std::int32_t(l), output);
    else if constexpr (requires { Loss::valid(l, output, place); })
      return Loss::valid(l, output, place);
    else
      return Loss::valid(l, output);
  }
};

template <class Loss>
sample_weighted(Loss) -> sample_weighted<Loss>;

template <class Loss>
constexpr bool weighs_samples = false;
template <class Loss>
constexpr bool weighs_samples<sample_weighted<Loss>> = true;

/// The loss of a sample's labels, without the weighting.
template <class Loss>
struct unweighted {
  using type = Loss;
};
template <class Loss>
struct unweighted<sample_weighted<Loss>> {
  using type = Loss;
};
template <class Loss>
using unweighted_loss = typename unweighted<Loss>::type;

}  // namespace edl::nn
