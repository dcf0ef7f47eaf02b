// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/core/span.hpp"

namespace edl::nn::detail {

/// What a softmax is made of: the largest of some logits, and the sums of exp(x − largest) and of x −
/// largest. Each sum is of doubles.
template <class T>
struct logit_sums {
  T largest;
  double exps, below;
};

/// The sums of a row that is not empty, by vectors. What is 87 below the largest adds nothing in single
/// precision. A NaN makes `exps` NaN.
template <std::floating_point T>
logit_sums<T> sums_of_logits(view<T> x);

/// y = exp(x − largest) · scale − shift, by vectors. `largest` is not below any x.
template <std::floating_point T>
void scaled_exps(view<T> x, T largest, T scale, T shift, std::type_identity_t<std::span<T>> y);

}  // namespace edl::nn::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/loss/logits.ipp"
#endif
