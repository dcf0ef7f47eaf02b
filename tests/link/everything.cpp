// SPDX-License-Identifier: Apache-2.0
#include "everything.hpp"

namespace {

constexpr auto network =
    edl::nn::sequential(edl::nn::image{.height = 4, .width = 4}, edl::nn::dense{.units = 2});

}  // namespace

// Weak, because this unit is linked twice.
[[gnu::weak]] std::size_t parameters() { return edl::model<network, edl::cpu>::parameter_count; }
