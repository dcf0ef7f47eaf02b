// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Computes filters for a first convolution that is not trained, {window.height, window.width, channels,
/// filters}. On pictures like these, their outputs have variance 1 and no correlation. They are the
/// eigenvectors of the windows' second moments, the largest first, each over √(its eigenvalue + epsilon). The
/// same with the opposite sign follow, repeated up to the number of filters (Page, "How to train your
/// ResNet", 2019; Jordan, 2024). `pictures` has any number of samples of shape `of_one`. Throws edl::error if
/// sizes do not fit, there is no picture, or a value is not finite.
void whiten(view<float> pictures, shape of_one, extent window, double epsilon, std::span<float> kernel);

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/layer/whitening.ipp"
#endif
