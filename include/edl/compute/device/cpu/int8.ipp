// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cpu/int8.hpp"
#include "edl/compute/device/cpu/int8_passes.hpp"
#include "edl/core/inline.hpp"

namespace edl::detail {

EDL_INLINE void int8_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f,
                             view<float> x, view<float> kernel, view<float> bias, std::span<float> y) {
  by_int8_unit([&]<class Unit>(Unit) { int8_forward_by<Unit>(cpu, g, batch, f, x, kernel, bias, y); });
}

EDL_INLINE std::string describe_int8() {
  return by_int8_unit([]<class Unit>(Unit) { return "int8, " + std::string(Unit::name); });
}

}  // namespace edl::detail
