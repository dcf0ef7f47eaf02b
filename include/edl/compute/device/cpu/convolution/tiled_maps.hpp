// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "edl/compute/device/cpu/tile_product.hpp"
#include "edl/compute/device/geometry.hpp"

/// Where a convolution by tiles (tiled_passes.hpp) finds what.
namespace edl::detail::tiled {

/// Samples that go together: those of two left tiles, or as many as a product sums at once.
constexpr std::size_t together = 32;
/// Places of a kernel.
constexpr std::size_t most_taps = 64;

constexpr std::size_t blocks(std::size_t n, std::size_t of) { return (n + of - 1) / of; }

/// One direction of a convolution, or of its transpose. It knows which place of the source a tap of the
/// kernel takes to a place of the target.
struct axis {
  int source, target, kernel, stride, before;
  bool turned;

  /// -1: none.
  int operator()(int to, int tap) const {
    int at = to * stride - before + tap;
    if (turned) {
      at = to + before - tap;
      if (at % stride != 0) return -1;
      at /= stride;
    }
    return at >= 0 && at < source ? at : -1;
  }
  bool reads(int at) const { return turned || (at + before) % stride < kernel; }
  /// Places of the source that a part of the target takes lie in [first, last).
  struct range {
    int first, last;
  };
  range of(int begin, int end) const {
    range r{source, 0};
    for (int to = begin; to < end; ++to)
      for (int tap = 0; tap < kernel; ++tap)
        if (int const at = (*this)(to, tap); at >= 0) r = {std::min(r.first, at), std::max(r.last, at + 1)};
    return r;
  }
  /// The most of them for a part of some places.
  int most(int some) const {
    int const reach = turned ? (some + kernel - 2) / stride + 1 : (some - 1) * stride + kernel;
    return std::min(source, reach);
  }
};

/// A convolution from one batch of maps to another.
struct mapping {
  mapping(conv_geometry const& g, bool turned)
      : source(turned ? g.out : g.in),
        target(turned ? g.in : g.out),
        down{source.height, target.height, g.kernel.height, g.stride.height, g.before.height, turned},
        across{source.width, target.width, g.kernel.width, g.stride.width, g.before.width, turned} {}

  std::size_t taps() const { return std::size_t(down.kernel) * std::size_t(across.kernel); }

  shape source, target;
  axis down, across;
};

/// Rows of packed maps, of which the last few are kept.
struct kept_rows {
  half* at;
  std::size_t size;  // of a row
  int slots;
  int packed = 0;  // rows before this one have been

  half* operator[](int row) const { return at + std::size_t(row % slots) * size; }

  template <class Pack>
  void fetch(axis::range wanted, axis const& down, Pack&& pack) {
    for (packed = std::max(packed, wanted.first); packed < wanted.last; ++packed)
      if (down.reads(packed)) pack(packed, (*this)[packed]);
  }
};

/// A part of a thread's share: rows [first, last) of the target maps of some samples.
struct band {
  std::size_t sample, samples;
  int first, last;
  bool fresh;  // other samples than before
};

/// work(band) for a thread's rows [begin, end) of all groups of samples, at most so many rows at a time.
template <class Work>
void by_bands(std::size_t begin, std::size_t end, int height, std::size_t batch, int most, Work&& work) {
  auto const h = std::size_t(height);
  bool fresh = true;
  while (begin < end) {
    std::size_t const sample = begin / h * together, row = begin % h,
                      some = std::min({h - row, end - begin, std::size_t(most)});
    work(band{sample, std::min(together, batch - sample), int(row), int(row + some), fresh});
    begin += some;
    fresh = begin % h == 0;
  }
}

}  // namespace edl::detail::tiled
