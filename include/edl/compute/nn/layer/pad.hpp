// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "edl/compute/nn/layer.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// Places of one value around a sample, and channels of it at each place. It runs on the processor.
/// (h, w, c) → (before.height + h + after.height, before.width + w + after.width, channels_before + c +
/// channels_after)
struct pad {
  extent before{0, 0}, after{0, 0};  ///< places; with one number, as many in both directions
  int channels_before = 0, channels_after = 0;
  float value = 0;

  static constexpr std::string_view name = "pad";
  static constexpr bool portable = false;  // devices write no constants yet
  static constexpr bool reads_y = false;

  constexpr bool treats_each_place() const {
    return before.height == 0 && before.width == 0 && after.height == 0 && after.width == 0;
  }
  constexpr fit check(shape) const {
    bool const good = before.height >= 0 && before.width >= 0 && after.height >= 0 && after.width >= 0 &&
                      channels_before >= 0 && channels_after >= 0 && value - value == 0;  // finite
    return good ? fit::fits : fit::option_out_of_range;
  }
  constexpr shape output(shape in) const {
    return {before.height + in.height + after.height, before.width + in.width + after.width,
            channels_before + in.channels + channels_after};
  }

  template <class D>
  void forward(pass<D>& p, forward_args<typename D::scalar> const& a) const {
    std::ranges::fill(a.y, typename D::scalar(value));
    each_run(a.in, a.out, [&](std::size_t of_x, std::size_t of_y, std::size_t size) {
      p.device.copy_columns(std::size_t(a.batch), size, a.x, of_x, a.in.size(), a.y, of_y, a.out.size());
    });
  }
  template <class D>
  void backward(pass<D>& p, backward_args<typename D::scalar> const& a) const {
    if (a.dx.empty()) return;
    each_run(a.in, a.out, [&](std::size_t of_x, std::size_t of_y, std::size_t size) {
      p.device.copy_columns(std::size_t(a.batch), size, a.dy, of_y, a.out.size(), a.dx, of_x, a.in.size());
    });
  }

 private:
  /// Calls visit(offset in a sample, offset in its result, size) for what lies together in both: a row of
  /// places, or one place if it gets channels.
  template <class Visit>
  void each_run(shape in, shape out, Visit const& visit) const {
    auto const c = std::size_t(in.channels), more = std::size_t(out.channels);
    std::size_t const places = c == more ? std::size_t(in.width) : 1;
    for (std::size_t h = 0; h < std::size_t(in.height); ++h)
      for (std::size_t w = 0; w < std::size_t(in.width); w += places) {
        std::size_t const x = h * std::size_t(in.width) + w,
                          y = (std::size_t(before.height) + h) * std::size_t(out.width) +
                              std::size_t(before.width) + w;
        visit(x * c, y * more + std::size_t(channels_before), places * c);
      }
  }
};

}  // namespace edl::nn
