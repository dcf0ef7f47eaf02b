// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "edl/compute/nn/loss/loss.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Another loss, where samples count by weights of their own: `into.weight` in `feed`, 1 unless it is set.
/// The loss of each sample is multiplied by its weight. The mean still divides by the number of samples, as
/// `class_weights` and Keras's `sample_weight` do, so that minibatches add up. A sample of weight 0 is left
/// out. The weight travels behind the sample's labels, which are floats for classes, too. It is computed
/// sample by sample, on the host.
template <class Loss>
struct sample_weighted {
  static_assert(sizeof(is_a_loss<Loss>) > 0);
  static constexpr bool by_samples =
      !has_own_labels<Loss> && !needs_whole_batch<Loss> && !requires { Loss::ignored; };
  static_assert(by_samples,
                "edl: `nn::sample_weighted` is for losses of samples one by one: not for `nn::heads`, "
                "`nn::sequence_cross_entropy` and `nn::triplet`");

  Loss loss;

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return Loss::labels(output) + 1; }
  static constexpr bool fits(shape output) { return loss_fits<Loss>(output); }
  constexpr bool options_fit(shape output) const { return nn::options_fit(loss, output); }

  static constexpr bool valid_weight(float weight) { return weight >= 0 && weight - weight == 0; }

  /// Whether it is a label or a weight; the one below knows which of them it is.
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

/// The loss that a sample's labels are for, weighted or not.
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
