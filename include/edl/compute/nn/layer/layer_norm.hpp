// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "edl/compute/nn/expression/layer.hpp"

namespace edl::nn {

/// Normalises the channels of each place of each sample to mean 0 and variance 1, then y = gamma ∘ x̂ + beta.
/// (Ba et al., "Layer Normalization", 2016; Keras' defaults.) It is independent of the batch and has no
/// state. The shape stays.
struct layer_norm {
  float epsilon = 1e-3f;

  static constexpr std::string_view name = "layer_normalization";
  static constexpr bool recomputes = true;

  constexpr fit check(shape) const { return epsilon > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr auto forward(auto x, auto& layer) const {
    auto const off = x - mean(x, channels), scale = 1 / sqrt(mean(square(off), channels) + epsilon);
    return off * scale * layer.variable("gamma", x.channels(), constant{1}) +
           layer.variable("beta", x.channels(), constant{0});
  }
};

/// Divides the channels of each place of each sample by the root of their mean square, then y = gamma ∘ x̂.
/// (Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.) It is independent of
/// the batch and has no state. The shape stays.
struct rms_norm {
  float epsilon = 1e-6f;

  static constexpr std::string_view name = "rms_normalization";
  static constexpr bool recomputes = true;

  constexpr fit check(shape) const { return epsilon > 0 ? fit::fits : fit::option_out_of_range; }
  constexpr auto forward(auto x, auto& layer) const {
    auto const scale = 1 / sqrt(mean(square(x), channels) + epsilon);
    return x * scale * layer.variable("gamma", x.channels(), constant{1});
  }
};

#ifndef EDL_HEADER_ONLY
namespace expression {
extern template void run<compiled<layer_norm>::forward, float>(basic_backend<float>&, call<float> const&);
extern template void run<compiled<layer_norm>::backward, float>(basic_backend<float>&, call<float> const&);
}  // namespace expression
#endif

}  // namespace edl::nn
