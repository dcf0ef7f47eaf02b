// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/geometry.hpp"
#include "edl/core/span.hpp"

namespace edl {

template <class T>
class basic_cpu;

}  // namespace edl

/// Products of 8-bit integers, for networks that are no longer trained. Both factors are quantised when a
/// product reads them, symmetrically: a number is an integer from −127 to 127 times a scale. Each sample
/// (each row of a dense layer) has a scale, and so has each output. So a sample's result does not depend on
/// other samples, and no calibration is needed. Up to `most_int8_terms` integer products are summed exactly
/// (Jacob et al., 2018), so the bits are the same for any number of threads, and on any processor. Larger
/// sums are computed in float32.
namespace edl::detail {

/// The largest number of products in a sum: this many times 127 × 128 is less than 2^31.
inline constexpr std::size_t most_int8_terms = 131'072;

/// y = f(x ∗ kernel + bias) with quantised factors. `bias` may be empty. A scale is the greatest magnitude
/// divided by 127, and 1 if all numbers are zero. If a sample or an output contains a number that is not
/// finite, its scale and its results are NaN. `g` may have at most `most_int8_terms` weights per output.
void int8_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
                  view<float> kernel, view<float> bias, std::span<float> y);

/// The name of the unit that computes it on this processor.
std::string describe_int8();

/// A dense layer as a convolution of samples with one place.
constexpr conv_geometry dense_geometry(std::size_t inputs, std::size_t outputs) {
  return {{1, 1, int(inputs)}, {1, 1, int(outputs)}, extent{1}, extent{1}, extent{0}};
}

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/int8.ipp"
#endif
