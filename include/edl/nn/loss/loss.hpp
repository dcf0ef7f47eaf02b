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
    (std::same_as<typename L::label, std::int32_t> || std::same_as<typename L::label, float>)&&requires(
        L const loss, shape output, view<float> outputs, view<typename L::label> truth,
        std::span<float> gradients) {
      { L::labels(output) } -> std::same_as<std::size_t>;
      { L::valid(typename L::label{}, output) } -> std::same_as<bool>;
      { loss(output, 1, outputs, truth, gradients) } -> std::convertible_to<double>;
    };

/// Whether a loss's options are in their ranges, for a network with such an output.
template <class Loss>
constexpr bool options_fit(Loss const& loss, shape output) {
  if constexpr (requires { loss.options_fit(output); })
    return loss.options_fit(output);
  else
    return true;
}

template <class Loss>
constexpr bool has_own_labels = requires { requires Loss::own_labels; };

template <class Loss>
constexpr bool needs_whole_batch = requires { requires Loss::whole_batch; };

/// Labels of this type, which no metric reads that does not read any.
template <class Label>
struct own_label {};

}  // namespace edl::nn
