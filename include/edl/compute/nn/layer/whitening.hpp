// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Filters for a first convolution that is not trained, {window.height, window.width, channels, filters}.
/// What they see of pictures like these has variance 1 and no correlation. They are the eigenvectors of the
/// windows' second moments, the largest first, each over √(its eigenvalue + epsilon). The same follow with
/// the other sign, as often as there are filters (Page, "How to train your ResNet", 2019; Jordan, 2024).
/// `pictures` holds any number of `of_one`. Throws edl::error where sizes do not fit, there is no picture, or
/// one holds a number that is none.
void whiten(view<float> pictures, shape of_one, extent window, double epsilon, std::span<float> kernel);

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/layer/whitening.ipp"
#endif
