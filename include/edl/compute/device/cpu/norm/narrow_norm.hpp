// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "edl/compute/device/cpu/norm/norm_strip.hpp"
#include "edl/compute/device/geometry.hpp"

/// The passes of batch normalisation (batch_norm.ipp) over samples [begin, end) that are bfloat16 on all
/// sides, whoever computes a strip: `Unit` is as narrow_norm::unit. Fewer than 32 channels are computed as
/// if several places were one.
namespace edl::detail::narrow_norm {

constexpr int most_window = 8;

/// Whether these functions compute it. `adds`: something is added to the result.
inline bool can_normalise(norm_chain const& c, bool adds) {
  auto const n = std::size_t(c.in.channels);
  bool const whole = n % strip_width == 0,
             folded = strip_width % n == 0 && c.window == 1 && c.in.size() % strip_width == 0;
  return c.narrow.in && c.narrow.out && (!adds || c.narrow_more) && !curved(c.f) && (whole || folded) &&
         c.window <= most_window && c.in.height % c.window == 0 && c.in.width % c.window == 0;
}

/// work(strip, its first channel, its first element of x, of y).
template <class Work>
void each_strip(norm_chain const& c, std::size_t begin, std::size_t end, Work&& work) {
  auto const n = std::size_t(c.in.channels), w = std::size_t(c.window), size = c.in.size();
  std::size_t const row = std::size_t(c.in.width) * n;
  std::array<std::size_t, most_window * most_window> at;
  for (std::size_t p = 0; p < w * w; ++p) at[p] = p / w * row + p % w * n;
  std::span<std::size_t const> const places(at.data(), w * w);
  if (w == 1) {
    std::size_t const wide = std::max(n, strip_width), last = end * size;
    for (std::size_t i = begin * size; i < last; i += most_rows * wide) {
      strip const s{std::min(most_rows, (last - i) / wide), wide, wide, places};
      for (std::size_t k = 0; k < wide; k += strip_width) work(s, k, i + k, i + k);
    }
    return;
  }
  strip const s{std::size_t(c.in.width) / w, w * n, n, places};
  for (std::size_t i = begin * size, o = begin * c.out().size(); i < end * size;
       i += w * row, o += s.count * n)
    for (std::size_t k = 0; k < n; k += strip_width) work(s, k, i + k, o + k);
}

/// A number of each channel, again and again where fewer than 32 have to fill a strip.
class filled {
 public:
  filled(std::size_t n, float const* from) : at_(from) {
    if (n >= strip_width) return;
    for (std::size_t k = 0; k < strip_width; ++k) room_[k] = from[k % n];
    at_ = room_;
  }
  filled(filled const&) = delete;
  float const* operator+(std::size_t k) const { return at_ + k; }

 private:
  float room_[strip_width];
  float const* at_;
};

/// Mean and sum of squared deviations of each channel.
template <class Unit>
void moments(norm_chain const& c, std::size_t begin, std::size_t end, half const* x, float* mean,
             float* squares) {
  auto const n = std::size_t(c.in.channels);
  float folded[2][strip_width]{};
  float *const m = n < strip_width ? folded[0] : mean, *const q = n < strip_width ? folded[1] : squares;
  std::fill_n(m, std::max(n, strip_width), 0.0f);
  std::fill_n(q, std::max(n, strip_width), 0.0f);
  std::size_t before = 0;
  each_strip({.in = c.in}, begin, end, [&](strip const& s, std::size_t k, std::size_t i, std::size_t) {
    Unit::moments(x + i, s.in, s.count, float(before), m + k, q + k);
    if (k + strip_width >= n) before += s.count;
  });
  for (std::size_t k = 0; k < n && n < strip_width; ++k) {
    mean[k] = m[k], squares[k] = q[k];
    for (std::size_t p = 1; p < strip_width / n; ++p) {
      float const off = m[p * n + k] - mean[k];
      mean[k] += off / float(p + 1);
      squares[k] += q[p * n + k] + off * off * float(before) * (float(p) / float(p + 1));
    }
  }
}

/// y = f(x · a + b + more), then what the chain says. `more` may be null.
template <class Unit>
void normalise(norm_chain const& c, std::size_t begin, std::size_t end, half const* x, float const* a,
               float const* b, half const* more, half* y) {
  filled const scale(std::size_t(c.in.channels), a), offset(std::size_t(c.in.channels), b);
  each_strip(c, begin, end, [&](strip const& s, std::size_t k, std::size_t i, std::size_t o) {
    Unit::normalise(s, c.f == activation::relu, x + i, scale + k, offset + k, more ? more + o : nullptr,
                    y + o);
  });
}

/// Adds Σ dz and Σ dz · (x − mean).
template <class Unit>
void sum_gradients(norm_chain const& c, std::size_t begin, std::size_t end, half const* x, half const* dy,
                   norm_arrays<float> const& m, float* sum, float* product) {
  auto const n = std::size_t(c.in.channels);
  float folded[2][strip_width]{};
  float *const s = n < strip_width ? folded[0] : sum, *const p = n < strip_width ? folded[1] : product;
  filled const scale(n, m.scale), offset(n, m.offset), mean(n, m.mean);
  each_strip(c, begin, end, [&](strip const& of, std::size_t k, std::size_t i, std::size_t o) {
    Unit::sum_gradients(of, c.f == activation::relu, x + i, dy + o,
                        {scale + k, offset + k, mean + k, nullptr, nullptr, nullptr}, s + k, p + k);
  });
  for (std::size_t k = 0; k < strip_width && n < strip_width; ++k) sum[k % n] += s[k], product[k % n] += p[k];
}

/// dx.
template <class Unit>
void write_gradients(norm_chain const& c, std::size_t begin, std::size_t end, half const* x, half const* dy,
                     norm_arrays<float> const& m, half* dx) {
  auto const n = std::size_t(c.in.channels);
  filled const scale(n, m.scale), offset(n, m.offset), of_dy(n, m.of_dy), of_x(n, m.of_x), rest(n, m.rest);
  each_strip(c, begin, end, [&](strip const& s, std::size_t k, std::size_t i, std::size_t o) {
    Unit::write_gradients(s, c.f == activation::relu, c.after_relu, x + i, dy + o,
                          {scale + k, offset + k, nullptr, of_dy + k, of_x + k, rest + k}, dx + i);
  });
}

}  // namespace edl::detail::narrow_norm
