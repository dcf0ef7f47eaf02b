// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace edl {

/// Extents of one sample, channels last, as data sets store them. The type is structural, so that compilers
/// print it inside diagnostics as `edl::shape{28, 28, 1}`.
struct shape {
  int height = 1, width = 1, channels = 1;

  constexpr std::size_t size() const {
    return std::size_t(height) * std::size_t(width) * std::size_t(channels);
  }
  constexpr bool flat() const { return height == 1 && width == 1; }
  friend constexpr bool operator==(shape, shape) = default;
};

/// A window's height and width. An `int` converts to a square one: `.kernel = 3`.
struct extent {
  int height = 1, width = 1;

  constexpr extent() = default;
  constexpr extent(int both) : height(both), width(both) {}
  constexpr extent(int h, int w) : height(h), width(w) {}
  friend constexpr bool operator==(extent, extent) = default;
};

/// Extents of one variable, at most four: a convolution's kernel is {height, width, in, out}.
struct extents {
  std::array<int, 4> sizes{};
  int rank = 0;

  constexpr extents() = default;
  template <class... Int>
  constexpr explicit(false) extents(int first, Int... rest)
      : sizes{first, int(rest)...}, rank(1 + int(sizeof...(rest))) {}
  constexpr std::size_t size() const {
    std::size_t n = 1;
    for (int i = 0; i < rank; ++i) n *= std::size_t(sizes[std::size_t(i)]);
    return n;
  }
  friend constexpr bool operator==(extents const&, extents const&) = default;
};

/// Whether a layer can follow the one before it, or why not.
enum class fit {
  fits,
  kernel_exceeds_input,
  window_exceeds_input,
  groups_do_not_divide_channels,
  branches_differ_in_shape,
  option_out_of_range,
  takes_only_ids,      ///< but the network does not begin with `nn::ids`, or something stands between
  takes_no_ids,        ///< but the network begins with `nn::ids`, which an `nn::embedding` takes
  takes_no_weights,    ///< but these ids have weights, which an `nn::embedding_bag` takes
  not_at_the_start,    ///< a named input can only be the first layer of a branch that begins the network
  sees_padding,        ///< within `nn::masked`, but it cannot distinguish padding from other places
  tensors_do_not_fit,  ///< within the forward pass of a user's layer
};

}  // namespace edl
