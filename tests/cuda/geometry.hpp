// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "edl/compute/device/geometry.hpp"
#include "edl/core/random.hpp"

/// A convolution in words, for a test that fails.
inline std::string text_of(edl::conv_geometry const& g, int batch) {
  auto const two = [](edl::extent e) { return fmt::format("{} x {}", e.height, e.width); };
  auto const three = [](edl::shape s) { return fmt::format("{} x {} x {}", s.height, s.width, s.channels); };
  return fmt::format("{} of {} to {}, kernel {}, stride {}, {} before, {} groups", batch, three(g.in),
                     three(g.out), two(g.kernel), two(g.stride), two(g.before), g.groups);
}

/// Draws convolutions.
class convolution_lottery {
 public:
  explicit convolution_lottery(std::uint64_t seed) : random_(seed, 0) {}

  /// 1 to n.
  int upto(int n) { return int(random_.below(std::uint64_t(n), drawn_++)) + 1; }

  /// As many places as fit, and maybe more border behind than before.
  edl::conv_geometry operator()(edl::extent most_kernel, edl::extent most_stride, int channels, int filters) {
    edl::extent const kernel(upto(most_kernel.height), upto(most_kernel.width)),
        stride(upto(most_stride.height), upto(most_stride.width)),
        before(upto(kernel.height) - 1, upto(kernel.width) - 1);
    int const height = upto(9), width = upto(12);
    auto const places = [](int in, int window, int step, int border) {
      return (std::max(in, window) - window + border) / step + 1;
    };
    return {{height, width, channels},
            {places(height, kernel.height, stride.height, before.height),
             places(width, kernel.width, stride.width, before.width), filters},
            kernel,
            stride,
            before,
            1};
  }

 private:
  edl::random_stream random_;
  std::uint64_t drawn_ = 0;
};
