// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"

namespace narrow_convolution {

/// A convolution of narrow samples, and its results by the definition, in double.
struct problem {
  edl::conv_geometry g;
  int batch;
  std::vector<float> x, w, bias, dy;
  std::vector<double> y, dx, dw, db;

  problem(edl::conv_geometry of, int samples, bool narrow_kernel = true) : g(of), batch(samples) {
    g.narrow = {true, true};
    auto const n = std::size_t(batch), filters = std::size_t(g.out.channels),
               inputs = std::size_t(g.in.channels);
    x = rounded(numbers<float>(n * g.in.size(), 1));
    w = numbers<float>(g.patch() * filters, 2);
    if (narrow_kernel) w = rounded(w);
    bias = numbers<float>(filters, 3);
    dy = rounded(numbers<float>(n * g.out.size(), 4));
    y.resize(dy.size()), dx.resize(x.size()), dw.resize(w.size()), db.resize(filters);
    for (std::size_t place = 0; place < y.size() / filters; ++place) {
      for (std::size_t f = 0; f < filters; ++f) {
        y[place * filters + f] = double(bias[f]);
        db[f] += double(dy[place * filters + f]);
      }
      auto const column = int(place % std::size_t(g.out.width)),
                 row = int(place / std::size_t(g.out.width) % std::size_t(g.out.height));
      for (int a = 0; a < g.kernel.height; ++a)
        for (int b = 0; b < g.kernel.width; ++b) {
          int const i = row * g.stride.height - g.before.height + a,
                    j = column * g.stride.width - g.before.width + b;
          if (i < 0 || j < 0 || i >= g.in.height || j >= g.in.width) continue;
          std::size_t const from =
              place / g.positions() * g.in.size() + std::size_t(i * g.in.width + j) * inputs;
          for (std::size_t c = 0; c < inputs; ++c)
            for (std::size_t f = 0; f < filters; ++f) {
              std::size_t const out = place * filters + f,
                                weight = (std::size_t(a * g.kernel.width + b) * inputs + c) * filters + f;
              y[out] += double(x[from + c]) * double(w[weight]);
              dx[from + c] += double(dy[out]) * double(w[weight]);
              dw[weight] += double(dy[out]) * double(x[from + c]);
            }
        }
    }
  }
};

/// What is computed of it, as scalars.
struct results {
  std::vector<float> y, dx, dw, db;

  friend bool operator==(results const&, results const&) = default;
};

/// The root of the mean square of the difference, of that of the expected numbers.
inline double error_of(std::vector<float> const& a, std::vector<double> const& expected) {
  double errors = 0, all = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    errors += (double(a[i]) - expected[i]) * (double(a[i]) - expected[i]);
    all += expected[i] * expected[i];
  }
  return std::sqrt(errors / all);
}

/// Twenty convolutions of 3 x 3, whose channels are multiples of `unit`: compare(geometry, batch, threads).
template <class Compare>
void compare_some(std::uint64_t seed, int unit, int largest, Compare const& compare) {
  edl::random_stream const random(seed, 0);
  std::uint64_t drawn = 0;
  auto const upto = [&](int n) { return int(random.below(std::uint64_t(n), drawn++)) + 1; };
  for (int i = 0; i < 20; ++i) {
    int const height = 2 + upto(largest), width = 2 + upto(largest);
    edl::extent const before{upto(3) - 1, upto(3) - 1};
    edl::shape const in{height, width, unit * upto(3)},
        out{height + 2 * before.height - 2, width + 2 * before.width - 2, unit * upto(3)};
    int const batch = upto(5);
    compare({in, out, 3, 1, before, 1}, batch, upto(3));
  }
}

}  // namespace narrow_convolution
