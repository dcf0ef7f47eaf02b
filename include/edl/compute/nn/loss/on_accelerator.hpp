// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/nn/expression/cuda_source.hpp"
#include "edl/compute/nn/expression/loss.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

// The losses on an accelerator: the same as their call operators, in its memory; the mean is written to
// `loss[0]`. The number of labels is the loss's; classes are passed as their bits.

inline void compute_loss(accelerator& d, softmax_cross_entropy const& l, shape output, int batch,
                         view<float> outputs, view<float> labels, std::span<float> gradients,
                         std::span<float> loss) {
  d.softmax_cross_entropy(std::size_t(batch), output.size(), l.label_smoothing, outputs,
                          reinterpret_cast<std::int32_t const*>(labels.data()), gradients, loss);
}

inline void compute_loss(accelerator& d, sigmoid_cross_entropy const& l, shape output, int batch,
                         view<float> outputs, view<float> labels, std::span<float> gradients,
                         std::span<float> loss) {
  d.sigmoid_cross_entropy(std::size_t(batch), output.size(), l.label_smoothing, outputs, labels, gradients,
                          loss);
}

inline void compute_loss(accelerator& d, mean_squared_error const&, shape output, int batch,
                         view<float> outputs, view<float> labels, std::span<float> gradients,
                         std::span<float> loss) {
  d.mean_squared_error(std::size_t(batch), output.size(), outputs, labels, gradients, loss);
}

template <class L>
void compute_loss(accelerator& d, derived_loss<L> const& l, shape output, int batch, view<float> outputs,
                  view<float> labels, std::span<float> gradients, std::span<float> loss) {
  expression::form const now = expression::loss_form_of(l.source, output);
  expression::run_on_accelerator(d, expression::compiled_loss<L>::both,
                                 {.now = now,
                                  .in = output,
                                  .batch = std::size_t(batch),
                                  .x = std::span(&outputs, 1),
                                  .y = loss,
                                  .dx = std::span(&gradients, 1),
                                  .labels = labels,
                                  .name = expression::name_of_type<L>()});
}

/// A loss that an accelerator computes.
template <class Loss>
concept computes_on_accelerator =
    requires(accelerator& d, Loss const& l, view<float> in, std::span<float> out) {
      compute_loss(d, l, shape{}, 1, in, in, out, out);
    };

/// The same for a loss with its options.
template <class Loss>
constexpr bool runs_on_accelerator([[maybe_unused]] Loss const& l) {
  if constexpr (requires { l.on_host(); })
    return computes_on_accelerator<Loss> && !l.on_host();
  else
    return computes_on_accelerator<Loss>;
}

/// `compute_loss`; a custom loss's is found by argument-dependent lookup.
template <computes_on_accelerator Loss>
void loss_on(accelerator& d, Loss const& l, shape output, int batch, view<float> outputs, view<float> labels,
             std::span<float> gradients, std::span<float> loss) {
  compute_loss(d, l, output, batch, outputs, labels, gradients, loss);
}

}  // namespace edl::nn
