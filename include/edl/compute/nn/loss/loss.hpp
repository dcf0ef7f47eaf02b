// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// A loss is a value: labels and outputs in, the mean over the batch and its gradient out. Its members say
/// what a label is, so that samples, metrics and readers follow from it:
/// - `label`: `std::int32_t` for classes, `float` for quantities;
/// - `class_labels`: labels are classes, and metrics compare them with the largest output;
/// - `labels(output)`: labels per sample, for a network whose outputs have that shape;
/// - `valid(label, output)`: whether one label can be used. Callers ask before they call the loss or a
///   metric, which believe what they get;
/// - `operator()(output, batch, outputs, truth, gradients)`: `outputs` holds batch × output.size() elements,
///   `truth` batch × labels(output) labels. Returns the mean loss per sample, 0 for an empty batch. It
///   overwrites `gradients` with the derivative of that mean by the outputs, unless it is empty. Allocates
///   nothing.
///
/// Optional members:
/// - `options_fit(output)`: whether the loss's options are in their ranges; if not, the model does not
///   compile;
/// - `on_host()`: with these options an accelerator does not compute it;
/// - `own_labels` = true: labels are neither classes of the outputs nor one quantity for each. Then only
///   metrics that say `any_labels` read them, and those that read none;
/// - `whole_batch` = true: samples are compared with each other, so that it is no loss of a head.
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

/// Instantiated for the loss of a model or of a head, so that the compiler's own words name it. Each part
/// that it lacks is one sentence.
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

  // What takes labels is looked for where it is known what a label is.
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
  static constexpr bool has_valid = !has_label || validates<L>, has_call = !has_label || computes<L>;

  static_assert(copies, "edl: this loss cannot be copied");
  static_assert(has_label,
                "edl: this loss has no `label`: `using label = std::int32_t;` for classes, `using label = "
                "float;` for numbers, and no other type");
  static_assert(
      has_class_labels,
      "edl: this loss has no `static constexpr bool class_labels`: true where a label is the number "
      "of an output");
  static_assert(has_labels,
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

/// Whether a loss can be computed from outputs of that shape. It says so by `fits(output)`, if not from all.
template <class Loss>
constexpr bool loss_fits(shape output) {
  if constexpr (requires { Loss::fits(output); })
    return Loss::fits(output);
  else
    return true;
}

/// Whether a loss's options are in their ranges, for a network with such an output.
template <class Loss>
constexpr bool options_fit(Loss const& loss, shape output) {
  if constexpr (requires { loss.options_fit(output); })
    return loss.options_fit(output);
  else
    return true;
}

/// Stands in for a loss that lacks something, so that this is the only thing reported.
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

/// Labels of this type, which no metric reads that does not read any.
template <class Label>
struct own_label {};

}  // namespace edl::nn
