// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "edl/compute/optim/optimizer.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// An optimiser that works on whole variables: it needs a norm of each, or its shape as a matrix.
/// `apply_whole` is one step on variable `of`, all of whose elements the spans have. Wherever a model is cut,
/// it is cut between variables then. `apply` is what rows of tables get, which are no variable's: element by
/// element, in any cut. Variables are stepped side by side, so `apply_whole` changes nothing but its spans.
template <class O>
concept whole_optimizer =
    optimizer<O> && requires(O const o, variable const& of, std::span<float> weights, view<float> gradients,
                             std::span<std::span<float> const> slots, float rate, std::uint64_t step) {
      o.apply_whole(of, weights, gradients, slots, rate, step);
    };

}  // namespace edl
