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

/// Products of numbers of 8 bits, for networks that are not trained any more. Both factors are quantised when
/// a product takes them, symmetrically: a number is a whole one from −127 to 127 times a scale. Each sample
/// (each row of a dense layer) has a scale, and so has each output. So the result for a sample does not
/// depend on the others, and there is nothing to calibrate. Whole numbers are multiplied, and summed without
/// an error, up to `most_int8_terms` for a result (Jacob et al., 2018). So the bits are the same for any
/// number of threads, and on any processor. Larger sums are computed in float32.
namespace edl::detail {

/// Products of which a result may be the sum: 127 × 128 times as many are less than 2^31.
inline constexpr std::size_t most_int8_terms = 131'072;

/// y = f(x ∗ kernel + bias) with quantised factors. `bias` may be empty. A scale is the greatest magnitude
/// over 127, and 1 for zeros alone. A sample or an output with a number that is not finite has a NaN, and
/// such results. `g` has at most `most_int8_terms` weights of an output.
void int8_forward(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f, view<float> x,
                  view<float> kernel, view<float> bias, std::span<float> y);

/// What computes it here.
std::string describe_int8();

/// A dense layer as a convolution of samples of one place.
constexpr conv_geometry dense_geometry(std::size_t inputs, std::size_t outputs) {
  return {{1, 1, int(inputs)}, {1, 1, int(outputs)}, extent{1}, extent{1}, extent{0}};
}

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/int8.ipp"
#endif
