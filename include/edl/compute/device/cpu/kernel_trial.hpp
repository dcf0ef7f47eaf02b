// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "edl/compute/device/geometry.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/random.hpp"
#include "edl/core/span.hpp"

/// Whether a kernel computes what it should: random numbers for it, and some results by the definition.
namespace edl::detail {

/// Random numbers that bfloat16 has, as scalars, and as an operation with a narrow side takes them.
class trial_numbers {
 public:
  trial_numbers(std::size_t n, std::uint64_t key, bool narrow) : scalars_(n) {
    random_stream const random{key, 0};
    for (std::size_t i = 0; i < n; ++i) scalars_[i] = from_bfloat16(to_bfloat16(2 * random.uniform(i) - 1));
    if (!narrow) return;
    narrow_.resize((n + 1) / 2);
    for (std::size_t i = 0; i < n; ++i) {
      auto const half = to_bfloat16(scalars_[i]);
      std::memcpy(reinterpret_cast<char*>(narrow_.data()) + i * sizeof half, &half, sizeof half);
    }
  }
  double operator[](std::size_t i) const { return double(scalars_[i]); }
  view<float> taken() const { return narrow_.empty() ? view<float>(scalars_) : view<float>(narrow_); }

 private:
  std::vector<float> scalars_, narrow_;
};

/// Fills results, narrow or not, with what is no number.
inline void poison(std::span<float> results) { std::memset(results.data(), 0xff, results.size_bytes()); }

/// Whether `n` results are numbers, and some of them near to by_definition(index), a sum of `terms` products.
template <class Definition>
bool about_right(float const* results, bool narrow, std::size_t n, std::size_t terms,
                 Definition&& by_definition) {
  auto const at = [&](std::size_t i) {
    if (!narrow) return results[i];
    std::uint16_t half = 0;
    std::memcpy(&half, reinterpret_cast<char const*>(results) + i * sizeof half, sizeof half);
    return from_bfloat16(half);
  };
  for (std::size_t i = 0; i < n; ++i)
    if (!std::isfinite(at(i))) return false;
  // Winograd's algorithm in bfloat16 errs by 0.6 % of results' size. A wrong border errs by more than 10 %.
  constexpr double most = 0.03;
  constexpr std::size_t worth = 1 << 20;
  random_stream const random{3, 0};
  double errors = 0, all = 0;
  for (std::size_t s = std::clamp<std::size_t>(worth / terms, 16, 256); s > 0; --s) {
    std::size_t const i = random.below(n, s);
    double const expected = by_definition(i), error = double(at(i)) - expected;
    errors += error * error;
    all += expected * expected;
  }
  return errors <= most * most * all;
}

/// A convolution's trial.
struct conv_trial {
  conv_trial(conv_geometry const& of, int batch)
      : g(of),
        samples(std::size_t(batch)),
        x(samples * g.in.size(), 1, g.narrow.in),
        dy(samples * g.out.size(), 2, g.narrow.out),
        kernel(g.patch() * std::size_t(g.out.channels), 3, false) {}

  bool right_forward(std::span<float const> y) const {
    return about_right(y.data(), g.narrow.out, samples * g.out.size(), g.patch(), [&](std::size_t i) {
      std::size_t const f = i % filters, place = i / filters % g.positions(), s = i / g.out.size();
      double sum = 0;
      each_tap([&](std::size_t tap, int a, int b) {
        int const row = int(place) / g.out.width * g.stride.height - g.before.height + a,
                  column = int(place) % g.out.width * g.stride.width - g.before.width + b;
        if (row < 0 || column < 0 || row >= g.in.height || column >= g.in.width) return;
        for (std::size_t c = 0; c < inner; ++c)
          sum +=
              x[at(g.in, s, row, column) + f / outer * inner + c] * kernel[(tap * inner + c) * filters + f];
      });
      return sum;
    });
  }
  bool right_data(std::span<float const> dx) const {
    return about_right(dx.data(), g.narrow.in, samples * g.in.size(), outer * taps(), [&](std::size_t i) {
      auto const channels = std::size_t(g.in.channels), c = i % channels;
      int const place = int(i / channels % (g.in.size() / channels));
      double sum = 0;
      each_tap([&](std::size_t tap, int a, int b) {
        int const row = place / g.in.width + g.before.height - a,
                  column = place % g.in.width + g.before.width - b;
        if (row < 0 || column < 0 || row % g.stride.height || column % g.stride.width ||
            row / g.stride.height >= g.out.height || column / g.stride.width >= g.out.width)
          return;
        std::size_t const from = at(g.out, i / g.in.size(), row / g.stride.height, column / g.stride.width);
        for (std::size_t o = 0; o < outer; ++o) {
          std::size_t const f = c / inner * outer + o;
          sum += dy[from + f] * kernel[(tap * inner + c % inner) * filters + f];
        }
      });
      return sum;
    });
  }
  bool right_weights(std::span<float const> dkernel) const {
    return about_right(dkernel.data(), false, dkernel.size(), samples * g.positions(), [&](std::size_t i) {
      std::size_t const f = i % filters, c = i / filters % inner, tap = i / filters / inner;
      int const a = int(tap) / g.kernel.width, b = int(tap) % g.kernel.width;
      double sum = 0;
      for (std::size_t s = 0; s < samples; ++s)
        for (int p = 0; p < g.out.height; ++p)
          for (int q = 0; q < g.out.width; ++q) {
            int const row = p * g.stride.height - g.before.height + a,
                      column = q * g.stride.width - g.before.width + b;
            if (row >= 0 && column >= 0 && row < g.in.height && column < g.in.width)
              sum += x[at(g.in, s, row, column) + f / outer * inner + c] * dy[at(g.out, s, p, q) + f];
          }
      return sum;
    });
  }

  conv_geometry g;
  std::size_t samples, filters = std::size_t(g.out.channels), inner = std::size_t(g.in.channels / g.groups),
                       outer = std::size_t(g.out.channels / g.groups);
  trial_numbers x, dy, kernel;

 private:
  std::size_t taps() const { return std::size_t(g.kernel.height) * std::size_t(g.kernel.width); }
  static std::size_t at(shape const& s, std::size_t sample, int row, int column) {
    return sample * s.size() + std::size_t(row * s.width + column) * std::size_t(s.channels);
  }
  template <class Work>
  void each_tap(Work&& work) const {
    for (int a = 0; a < g.kernel.height; ++a)
      for (int b = 0; b < g.kernel.width; ++b) work(std::size_t(a * g.kernel.width + b), a, b);
  }
};

}  // namespace edl::detail
