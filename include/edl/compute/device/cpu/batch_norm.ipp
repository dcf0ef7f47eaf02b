// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gelu.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"
#include "edl/compute/device/cpu/rows.hpp"

namespace edl {
namespace detail {

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
  }
}

/// y = f(x · a + b + more), then what the chain says, for some samples. `more` may be null.
template <class T, activation F>
void normalise(norm_chain const& c, std::size_t samples, T const* x, T const* a, T const* b, T const* more,
               T* y) {
  std::size_t const n = std::size_t(c.in.channels);
  T const floor = F == activation::relu ? T(0) : -std::numeric_limits<T>::infinity();
  std::size_t const rows = samples * c.in.size() / n;
  if constexpr (F == activation::gelu) {
    for (std::size_t r = 0; r < rows; ++r)
      by_lanes<T>(n, [&]<class V>(std::size_t k) {
        store<V>(y + r * n + k, gelu(V(load<V>(x + r * n + k) * load<V>(a + k) + load<V>(b + k))));
      });
    return;
  }
  if (c.window == 1) {
    for (std::size_t r = 0; r < rows; ++r)
      by_lanes<T>(n, [&]<class V>(std::size_t k) {
        V z = load<V>(x + r * n + k) * load<V>(a + k) + load<V>(b + k);
        if (more) z += load<V>(more + r * n + k);
        store<V>(y + r * n + k, z < floor ? V{} + floor : z);
      });
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

/// What a channel's gradients need, one array of `channels` after the other.
template <class T>
struct norm_arrays {
  T const *scale, *offset, *mean;  // z = x · scale + offset
  T const *of_dy, *of_x, *rest;    // dx = dz · of_dy + x · of_x + rest
};

/// Adds Σ dz and Σ dz · (x − mean) of some samples.
template <class T, activation F>
void sum_gradients(norm_chain const& c, std::size_t samples, T const* x, T const* dy, norm_arrays<T> const& m,
                   T* sum, T* product) {
  std::size_t const n = std::size_t(c.in.channels);
  constexpr bool relu = F == activation::relu, gelu = F == activation::gelu;
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
        if constexpr (gelu) g *= gelu_slope(V(here * scale + offset));
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
  constexpr bool relu = F == activation::relu, gelu = F == activation::gelu;
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
        if constexpr (gelu) g *= gelu_slope(V(in * load<V>(m.scale + k) + load<V>(m.offset + k)));
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

template <class T>
int norm_parts(basic_cpu<T> const& cpu, norm_chain const& c, int batch) {
  return std::min(cpu.parts(std::size_t(batch), 1), cpu.parts(std::size_t(batch) * c.in.size(), 16 * 1024));
}

template <class T>
T gamma_at(view<T> gamma, std::size_t k) {
  return gamma.empty() ? T(1) : gamma[k];
}

/// Computes y from the statistics in `kept`.
template <class T>
void normalise_batch(basic_cpu<T>& cpu, norm_chain const& c, int batch, view<T> x, view<T> gamma,
                     view<T> beta, view<T> more, std::span<T> y, view<T> kept) {
  auto const n = std::size_t(c.in.channels);
  T *const a = cpu.room(0, 0, 2 * n).data(), *const b = a + n;
  for (std::size_t k = 0; k < n; ++k) {
    a[k] = gamma_at(gamma, k) * kept[n + k];
    b[k] = T(c.shift_gain) * beta[k] - kept[k] * a[k];
  }
  cpu.share(std::size_t(batch), norm_parts(cpu, c, batch), [&](std::size_t begin, std::size_t end, int t) {
    narrow_samples<T> const in(cpu, t, 2, x.data(), c.narrow.in), out(cpu, t, 3, y.data(), c.narrow.out),
        added(cpu, t, 4, more.empty() ? nullptr : more.data(), c.narrow_more);
    in_parts(c, begin, end, [&](norm_chain const& part, std::size_t samples, std::size_t i, std::size_t o) {
      std::size_t const inputs = samples * part.in.size(), outputs = samples * part.out().size();
      by_activation(c.f, [&]<activation F>() {
        normalise<T, F>(part, samples, in.read(i, inputs), a, b, added.read(o, outputs),
                        out.place(o, outputs));
      });
      out.write(o, outputs);
    });
  });
}

}  // namespace detail

template <class T>
void basic_cpu<T>::batch_norm_train(norm_chain const& c, int batch, T momentum, T epsilon, view<T> x,
                                    view<T> gamma, view<T> beta, view<T> more, std::span<T> running_mean,
                                    std::span<T> running_variance, std::span<T> y, std::span<T> kept) {
  auto const n = std::size_t(c.in.channels), rows = c.in.size() / n;
  int const parts = detail::norm_parts(*this, c, batch);
  this->share(std::size_t(batch), parts, [&](std::size_t begin, std::size_t end, int t) {
    T* const own = this->room(t, 1, 2 * n).data();
    detail::narrow_samples<T> const in(*this, t, 2, x.data(), c.narrow.in);
    detail::channel_moments<T>(begin * rows, (end - begin) * rows, n, in, own, own + n);
  });
  T *const mean = kept.data(), *const inverse = kept.data() + n;
  for (std::size_t k = 0; k < n; ++k) {
    T m = 0, squares = 0, count = 0;
    for (int t = 0; t < parts; ++t) {
      T const* const own = this->room(t, 1, 2 * n).data();
      auto const share = std::size_t(batch) * std::size_t(t + 1) / std::size_t(parts) -
                         std::size_t(batch) * std::size_t(t) / std::size_t(parts);
      T const size = T(share * rows), all = count + size, off = own[k] - m;
      m += off * (size / all);
      squares += own[n + k] + off * off * (count * (size / all));
      count = all;
    }
    T const variance = squares / count;
    running_mean[k] = running_mean[k] * momentum + m * (T(1) - momentum);
    running_variance[k] = running_variance[k] * momentum + variance * (T(1) - momentum);
    mean[k] = m;
    inverse[k] = T(1) / std::sqrt(variance + epsilon);
  }
  detail::normalise_batch<T>(*this, c, batch, x, gamma, beta, more, y, kept);
}

template <class T>
void basic_cpu<T>::batch_norm_evaluate(norm_chain const& c, int batch, T epsilon, view<T> x, view<T> gamma,
                                       view<T> beta, view<T> more, view<T> running_mean,
                                       view<T> running_variance, std::span<T> y, std::span<T> kept) {
  auto const n = std::size_t(c.in.channels);
  for (std::size_t k = 0; k < n; ++k) {
    kept[k] = running_mean[k];
    kept[n + k] = T(1) / std::sqrt(running_variance[k] + epsilon);
  }
  detail::normalise_batch<T>(*this, c, batch, x, gamma, beta, more, y, kept);
}

template <class T>
void basic_cpu<T>::batch_norm_recompute(norm_chain const& c, int batch, view<T> x, view<T> gamma,
                                        view<T> beta, view<T> kept, std::span<T> y) {
  detail::normalise_batch<T>(*this, c, batch, x, gamma, beta, {}, y, kept);
}

template <class T>
void basic_cpu<T>::batch_norm_backward(norm_chain const& c, int batch, bool through, view<T> x, view<T> gamma,
                                       view<T> beta, view<T> dy, view<T> kept, std::span<T> dx,
                                       std::span<T> dgamma, std::span<T> dbeta) {
  auto const n = std::size_t(c.in.channels);
  T* const arrays = this->room(0, 0, 6 * n).data();
  for (std::size_t k = 0; k < n; ++k) {
    arrays[k] = detail::gamma_at<T>(gamma, k) * kept[n + k];
    arrays[n + k] = T(c.shift_gain) * beta[k] - kept[k] * arrays[k];
    arrays[2 * n + k] = kept[k];
  }
  detail::norm_arrays<T> const m{arrays,         arrays + n,     arrays + 2 * n,
                                 arrays + 3 * n, arrays + 4 * n, arrays + 5 * n};
  int const parts = detail::norm_parts(*this, c, batch);
  auto const sums = [&](int t) { return this->room(t, 1, 2 * n).data(); };
  this->share(std::size_t(batch), parts, [&](std::size_t begin, std::size_t end, int t) {
    std::fill_n(sums(t), 2 * n, T(0));
    detail::narrow_samples<T> const in(*this, t, 2, x.data(), c.narrow.in),
        out(*this, t, 3, dy.data(), c.narrow.out);
    detail::in_parts(
        c, begin, end, [&](norm_chain const& p, std::size_t samples, std::size_t i, std::size_t o) {
          detail::by_activation(c.f, [&]<activation F>() {
            detail::sum_gradients<T, F>(p, samples, in.read(i, samples * p.in.size()),
                                        out.read(o, samples * p.out().size()), m, sums(t), sums(t) + n);
          });
        });
  });
  detail::add_parts(*this, parts, 2 * n, sums);
  std::size_t const rows = c.in.size() / n;
  T const share = T(1) / T(std::size_t(batch) * rows);
  for (std::size_t k = 0; k < n; ++k) {
    T const inverse = kept[n + k], a = arrays[k], sum = sums(0)[k], product = sums(0)[n + k] * inverse;
    dbeta[k] = T(c.shift_gain) * sum;
    if (!dgamma.empty()) dgamma[k] = product;
    // dx = a · (dz − Σ dz / N − x̂ · Σ (dz · x̂) / N)
    T const b = through ? -a * product * inverse * share : T(0);
    arrays[3 * n + k] = a;
    arrays[4 * n + k] = b;
    arrays[5 * n + k] = through ? -a * sum * share - b * kept[k] : T(0);
  }
  if (dx.empty()) return;
  this->share(std::size_t(batch), parts, [&](std::size_t begin, std::size_t end, int t) {
    detail::narrow_samples<T> const in(*this, t, 2, x.data(), c.narrow.in),
        out(*this, t, 3, dy.data(), c.narrow.out), back(*this, t, 4, dx.data(), c.narrow.in);
    detail::in_parts(
        c, begin, end, [&](norm_chain const& p, std::size_t samples, std::size_t i, std::size_t o) {
          std::size_t const inputs = samples * p.in.size();
          detail::by_activation(c.f, [&]<activation F>() {
            detail::write_gradients<T, F>(p, samples, in.read(i, inputs),
                                          out.read(o, samples * p.out().size()), m, back.place(i, inputs));
          });
          back.write(i, inputs);
        });
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::batch_norm_train(norm_chain const&, int, float, float, view<float>,
                                                 view<float>, view<float>, view<float>, std::span<float>,
                                                 std::span<float>, std::span<float>, std::span<float>);
template void basic_cpu<double>::batch_norm_train(norm_chain const&, int, double, double, view<double>,
                                                  view<double>, view<double>, view<double>, std::span<double>,
                                                  std::span<double>, std::span<double>, std::span<double>);
template void basic_cpu<float>::batch_norm_evaluate(norm_chain const&, int, float, view<float>, view<float>,
                                                    view<float>, view<float>, view<float>, view<float>,
                                                    std::span<float>, std::span<float>);
template void basic_cpu<double>::batch_norm_evaluate(norm_chain const&, int, double, view<double>,
                                                     view<double>, view<double>, view<double>, view<double>,
                                                     view<double>, std::span<double>, std::span<double>);
template void basic_cpu<float>::batch_norm_recompute(norm_chain const&, int, view<float>, view<float>,
                                                     view<float>, view<float>, std::span<float>);
template void basic_cpu<float>::batch_norm_backward(norm_chain const&, int, bool, view<float>, view<float>,
                                                    view<float>, view<float>, view<float>, std::span<float>,
                                                    std::span<float>, std::span<float>);
template void basic_cpu<double>::batch_norm_recompute(norm_chain const&, int, view<double>, view<double>,
                                                      view<double>, view<double>, std::span<double>);
template void basic_cpu<double>::batch_norm_backward(norm_chain const&, int, bool, view<double>, view<double>,
                                                     view<double>, view<double>, view<double>,
                                                     std::span<double>, std::span<double>, std::span<double>);
#endif

}  // namespace edl
