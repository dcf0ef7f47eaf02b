// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/compute/device/activation.hpp"
#include "edl/core/span.hpp"

namespace edl {

template <class T>
class basic_cpu;

}  // namespace edl

/// Products of numbers of 8 bits, for networks that are not trained any more. Both factors are quantised when
/// a product takes them, symmetrically: a number is a whole one from −127 to 127 times a scale. Each sample
/// (each row of a dense layer) has a scale, and so has each output. So the result for a sample does not
/// depend on the others, and there is nothing to calibrate. Whole numbers are multiplied, and summed without
/// an error (Jacob et al., 2018).
namespace edl::detail {

/// Two factors, quantised, in rooms of the first thread that convolutions do not use, or kept since the
/// device was told of the kernel. `Q` is std::int8_t, or float for kernels that multiply nothing else.
template <class Q>
struct quantised {
  Q *x, *kernel;
  std::span<float> of_samples, of_outputs;  ///< scales
};

/// Of x (samples × width) and kernel (depth × outputs). A scale is the greatest magnitude over 127, and 1 for
/// zeros alone. A sample or an output with a number that is not finite has a NaN, and such results.
template <class Q>
quantised<Q> quantise(basic_cpu<float>& cpu, std::size_t samples, std::size_t width, view<float> x,
                      std::size_t depth, std::size_t outputs, view<float> kernel);

/// What sums in y's memory are: whole numbers of 32 bits, or float32.
enum class int8_sums { whole, float32 };

/// y (samples · places × outputs) = f(sums · both scales + bias). `bias` may be empty.
void finish_int8(basic_cpu<float>& cpu, std::size_t samples, std::size_t places, std::size_t outputs,
                 std::span<float const> of_samples, std::span<float const> of_outputs, int8_sums sums,
                 activation f, view<float> bias, std::span<float> y);

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/int8.ipp"
#endif
