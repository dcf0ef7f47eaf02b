// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "edl/compute/device/cpu/gelu.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"
#include "edl/compute/device/cpu/norm/norm_strip.hpp"
#include "edl/compute/device/geometry.hpp"

/// The loops of batch normalisation (batch_norm.ipp), on any processor.
namespace edl::detail {

/// Calls work(chain, samples, first element of x, of y) for samples [begin, end). Where any are narrow, these
/// are rows of places that a core's first cache holds, seen as a sample.
template <class Work>
void in_parts(norm_chain const& c, std::size_t begin, std::size_t end, Work&& work) {
  auto const n = std::size_t(c.in.channels), width = std::size_t(c.in.width);
  norm_chain part = c;
  if (!c.narrow.any() && !c.narrow_more) {
    work(c, end - begin, begin * c.in.size(), begin * c.out().size());
  } else if (c.window == 1) {
    std::size_t const rows = c.in.size() / n, most = std::max<std::size_t>(1, 1024 / n);
    for (std::size_t i = begin * rows; i < end * rows; i += most) {
      part.in = {int(std::min(most, end * rows - i)), 1, c.in.channels};
      work(part, 1, i * n, i * n);
    }
  } else {
    auto const w = std::size_t(c.window), height = std::size_t(c.in.height);
    for (std::size_t s = begin; s < end; ++s)
      for (std::size_t i = 0; i < height; i += w) {
        part.in = {int(std::min(w, height - i)), c.in.width, c.in.channels};
        work(part, 1, s * c.in.size() + i * width * n, s * c.out().size() + i / w * (width / w) * n);
      }
  }
}

/// Mean and sum of squared deviations of each channel over some rows from `first` on, in one pass over
/// memory. Blocks of rows are summed as they differ from their first, and joined by Chan's formula (1979). So
/// a large mean costs no digits of the variance.
template <class T>
void channel_moments(std::size_t first, std::size_t rows, std::size_t n, narrow_samples<T> const& x, T* mean,
                     T* squares) {
  constexpr std::size_t block = 64;
  std::fill_n(mean, n, T(0));
  std::fill_n(squares, n, T(0));
  for (std::size_t i = 0; i < rows; i += block) {
    std::size_t const size = std::min(block, rows - i);
    T const weight = T(1) / T(size), share = T(size) / T(i + size), both = T(i) * share;
    T const* const begin = x.read((first + i) * n, size * n);
    by_lanes<T>(n, [&]<class V>(std::size_t c) {
      T const* from = begin + c;
      V const shift = load<V>(from);
      V sum[2]{}, square[2]{};
      for (std::size_t r = 0; r + 2 <= size; r += 2, from += 2 * n) {
        V const a = load<V>(from) - shift, b = load<V>(from + n) - shift;
        sum[0] += a, sum[1] += b;
        square[0] += a * a, square[1] += b * b;
      }
      if (size % 2) {
        V const a = load<V>(from) - shift;
        sum[0] += a, square[0] += a * a;
      }
      V const total = sum[0] + sum[1], off = shift + total * weight - load<V>(mean + c);
      store<V>(squares + c,
               load<V>(squares + c) + (square[0] + square[1] - total * total * weight) + off * off * both);
      store<V>(mean + c, load<V>(mean + c) + off * share);
    });
  }
}

/// Visits the windows of some samples: visit(element of y, element of x of the window's first position).
template <class Visit>
void for_each_norm_window(norm_chain const& c, std::size_t samples, Visit&& visit) {
  shape const out = c.out();
  auto const n = std::size_t(c.in.channels), w = std::size_t(c.window), row = n * std::size_t(c.in.width);
  std::size_t to = 0;
  for (std::size_t s = 0; s < samples; ++s)
    for (std::size_t i = 0; i < std::size_t(out.height); ++i)
      for (std::size_t j = 0; j < std::size_t(out.width); ++j, to += n)
        visit(to, s * c.in.size() + i * w * row + j * w * n);
}

/// Visits the positions of a window, relative to the first.
template <class Visit>
void for_each_position(norm_chain const& c, Visit&& visit) {
  auto const n = std::size_t(c.in.channels), row = n * std::size_t(c.in.width);
  for (int i = 0; i < c.window; ++i)
    for (int j = 0; j < c.window; ++j) visit(std::size_t(i) * row + std::size_t(j) * n);
}

/// An activation that is `curved`.
template <activation F, class V>
V curve(V const& z) {
  if constexpr (F == activation::silu)
    return silu(z);
  else
    return gelu(z);
}

/// Its derivative.
template <activation F, class V>
V curve_slope(V const& z) {
  if constexpr (F == activation::silu)
    return silu_slope(z);
  else
    return gelu_slope(z);
}

/// work.operator()<F>() for the activation that a chain says.
template <class Work>
void by_activation(activation f, Work&& work) {
  switch (f) {
    case activation::none:
      return work.template operator()<activation::none>();
    case activation::relu:
      return work.template operator()<activation::relu>();
    case activation::gelu:
      return work.template operator()<activation::gelu>();
    case activation::silu:
      return work.template operator()<activation::silu>();
  }
}

/// y = max(x · a + b + more, floor) of some rows of n channels. Those of `Vectors` at a time stay in
/// registers.
template <bool More, class V, int Vectors, class T>
[[gnu::always_inline]] inline void normalise_strip(std::size_t n, std::size_t rows, T const* x, T const* a,
                                                   T const* b, T const* more, T floor, T* y) {
  constexpr std::size_t width = sizeof(V) / sizeof(T);
  V scale[Vectors], offset[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) {
    scale[v] = load<V>(a + v * width);
    offset[v] = load<V>(b + v * width);
  }
  for (std::size_t at = 0; at < rows * n; at += n)
    for (std::size_t v = 0; v < Vectors; ++v) {
      V z = load<V>(x + at + v * width) * scale[v] + offset[v];
      if constexpr (More) z += load<V>(more + at + v * width);
      store<V>(y + at + v * width, z < floor ? V{} + floor : z);
    }
}
template <bool More, class T>
void normalise_rows(std::size_t n, std::size_t rows, T const* x, T const* a, T const* b, T const* more,
                    T floor, T* y) {
  using vector = typename lanes<T>::type;
  constexpr std::size_t width = lanes<T>::count;
  std::size_t k = 0;
  auto const added = [&] { return More ? more + k : nullptr; };
  for (; k + 4 * width <= n; k += 4 * width)
    normalise_strip<More, vector, 4>(n, rows, x + k, a + k, b + k, added(), floor, y + k);
  for (; k + width <= n; k += width)
    normalise_strip<More, vector, 1>(n, rows, x + k, a + k, b + k, added(), floor, y + k);
  for (; k < n; ++k) normalise_strip<More, T, 1>(n, rows, x + k, a + k, b + k, added(), floor, y + k);
}

/// y = f(x · a + b + more), then what the chain says, for some samples. `more` may be null.
template <class T, activation F>
void normalise(norm_chain const& c, std::size_t samples, T const* x, T const* a, T const* b, T const* more,
               T* y) {
  std::size_t const n = std::size_t(c.in.channels);
  T const floor = F == activation::relu ? T(0) : -std::numeric_limits<T>::infinity();
  std::size_t const rows = samples * c.in.size() / n;
  if constexpr (curved(F)) {
    for (std::size_t r = 0; r < rows; ++r)
      by_lanes<T>(n, [&]<class V>(std::size_t k) {
        store<V>(y + r * n + k, curve<F>(V(load<V>(x + r * n + k) * load<V>(a + k) + load<V>(b + k))));
      });
    return;
  }
  if (c.window == 1) {
    more ? normalise_rows<true>(n, rows, x, a, b, more, floor, y)
         : normalise_rows<false>(n, rows, x, a, b, more, floor, y);
    return;
  }
  for_each_norm_window(c, samples, [&](std::size_t to, std::size_t from) {
    by_lanes<T>(n, [&]<class V>(std::size_t k) {
      V const scale = load<V>(a + k), offset = load<V>(b + k);
      V most = V{} + floor;
      for_each_position(c, [&](std::size_t at) {
        V const z = load<V>(x + from + at + k) * scale + offset;
        most = ((z > most) | (z != z)) ? z : most;  // a NaN stays
      });
      store<V>(y + to + k, most);
    });
  });
}

/// Adds Σ dz and Σ dz · (x − mean) of some samples.
template <class T, activation F>
void sum_gradients(norm_chain const& c, std::size_t samples, T const* x, T const* dy, norm_arrays<T> const& m,
                   T* sum, T* product) {
  std::size_t const n = std::size_t(c.in.channels);
  constexpr bool relu = F == activation::relu;
  if (c.window > 1) {
    for_each_norm_window(c, samples, [&](std::size_t to, std::size_t from) {
      by_lanes<T>(n, [&]<class V>(std::size_t k) {
        V const scale = load<V>(m.scale + k), offset = load<V>(m.offset + k);
        V most = V{} - std::numeric_limits<T>::infinity(), where = load<V>(x + from + k);
        for_each_position(c, [&](std::size_t at) {
          V const in = load<V>(x + from + at + k), z = in * scale + offset;
          where = z > most ? in : where;
          most = z > most ? z : most;
        });
        V g = load<V>(dy + to + k);
        if constexpr (relu) g = most > T(0) ? g : V{};
        store<V>(sum + k, load<V>(sum + k) + g);
        store<V>(product + k, load<V>(product + k) + g * (where - load<V>(m.mean + k)));
      });
    });
    return;
  }
  // In blocks, so that the error grows with the root of their number.
  constexpr std::size_t block = 64;
  std::size_t const rows = samples * c.in.size() / n;
  for (std::size_t first = 0; first < rows; first += block) {
    std::size_t const size = std::min(block, rows - first);
    by_lanes<T>(n, [&]<class V>(std::size_t k) {
      V const mean = load<V>(m.mean + k), scale = load<V>(m.scale + k), offset = load<V>(m.offset + k);
      V s[2]{}, p[2]{};
      T const *in = x + first * n + k, *out = dy + first * n + k;
      auto const add = [&](int to) {
        V const here = load<V>(in);
        V g = load<V>(out);
        if constexpr (relu) g = here * scale + offset > T(0) ? g : V{};
        if constexpr (curved(F)) g *= curve_slope<F>(V(here * scale + offset));
        s[to] += g;
        p[to] += g * (here - mean);
        in += n;
        out += n;
      };
      for (std::size_t r = 0; r + 2 <= size; r += 2) add(0), add(1);
      if (size % 2) add(0);
      store<V>(sum + k, load<V>(sum + k) + (s[0] + s[1]));
      store<V>(product + k, load<V>(product + k) + (p[0] + p[1]));
    });
  }
}

/// Gradients with respect to x of some samples.
template <class T, activation F>
void write_gradients(norm_chain const& c, std::size_t samples, T const* x, T const* dy,
                     norm_arrays<T> const& m, T* dx) {
  std::size_t const n = std::size_t(c.in.channels);
  constexpr bool relu = F == activation::relu;
  auto const finish = [&]<class V>(std::size_t k, V const& in, V const& g) {
    V const d = g * load<V>(m.of_dy + k) + in * load<V>(m.of_x + k) + load<V>(m.rest + k);
    return c.after_relu ? (in > T(0) ? d : V{}) : d;
  };
  if (c.window == 1) {
    std::size_t const rows = samples * c.in.size() / n;
    for (std::size_t r = 0; r < rows; ++r)
      by_lanes<T>(n, [&]<class V>(std::size_t k) {
        V const in = load<V>(x + r * n + k);
        V g = load<V>(dy + r * n + k);
        if constexpr (relu) g = in * load<V>(m.scale + k) + load<V>(m.offset + k) > T(0) ? g : V{};
        if constexpr (curved(F)) g *= curve_slope<F>(V(in * load<V>(m.scale + k) + load<V>(m.offset + k)));
        store<V>(dx + r * n + k, finish.template operator()<V>(k, in, g));
      });
    return;
  }
  if (c.in.height % c.window || c.in.width % c.window) {  // what no window covers has no dz
    std::size_t const rows = samples * c.in.size() / n;
    for (std::size_t r = 0; r < rows; ++r)
      by_lanes<T>(n, [&]<class V>(std::size_t k) {
        store<V>(dx + r * n + k, finish.template operator()<V>(k, load<V>(x + r * n + k), V{}));
      });
  }
  for_each_norm_window(c, samples, [&](std::size_t to, std::size_t from) {
    by_lanes<T>(n, [&]<class V>(std::size_t k) {
      V const scale = load<V>(m.scale + k), offset = load<V>(m.offset + k);
      V most = V{} - std::numeric_limits<T>::infinity();
      for_each_position(c, [&](std::size_t at) {
        V const z = load<V>(x + from + at + k) * scale + offset;
        most = z > most ? z : most;
      });
      V left = load<V>(dy + to + k);  // taken by the first of equal greatest
      if constexpr (relu) left = most > T(0) ? left : V{};
      for_each_position(c, [&](std::size_t at) {
        V const in = load<V>(x + from + at + k);
        V const g = in * scale + offset >= most ? left : V{};
        left -= g;
        store<V>(dx + from + at + k, finish.template operator()<V>(k, in, g));
      });
    });
  });
}

}  // namespace edl::detail
