// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"
#include "edl/compute/device/cpu/norm/batch_norm_loops.hpp"
#include "edl/compute/device/cpu/norm/narrow_norm.hpp"
#include "edl/compute/device/cpu/norm/norm_unit.hpp"
#include "edl/compute/device/cpu/rows.hpp"

namespace edl {
namespace detail {

template <class T>
int norm_parts(basic_cpu<T> const& cpu, norm_chain const& c, int batch) {
  return std::min(cpu.parts(std::size_t(batch), 1), cpu.parts(std::size_t(batch) * c.in.size(), 16 * 1024));
}

/// Calls work.operator()<Unit>(samples…) if the processor's own instructions can normalise narrow samples.
/// False: not called.
template <class T, class Work>
bool by_norm_unit([[maybe_unused]] norm_chain const& c, [[maybe_unused]] bool adds,
                  [[maybe_unused]] Work&& work) {
#ifdef __x86_64__
  if constexpr (std::same_as<T, float>)
    if (has_bfloat16_instructions() && narrow_norm::can_normalise(c, adds))
      return work.template operator()<narrow_norm::unit>(), true;
#endif
  return false;
}

template <class T>
narrow_norm::half const* halves_of(view<T> x) {
  return reinterpret_cast<narrow_norm::half const*>(x.data());
}
template <class T>
narrow_norm::half* halves_of(std::span<T> x) {
  return reinterpret_cast<narrow_norm::half*>(x.data());
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
    if (by_norm_unit<T>(c, !more.empty(), [&]<class Unit> {
          narrow_norm::normalise<Unit>(c, begin, end, halves_of(x), a, b, halves_of(more), halves_of(y));
        }))
      return;
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
    if (detail::by_norm_unit<T>(c, false, [&]<class Unit> {
          detail::narrow_norm::moments<Unit>(c, begin, end, detail::halves_of(x), own, own + n);
        }))
      return;
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
    if (detail::by_norm_unit<T>(c, false, [&]<class Unit> {
          detail::narrow_norm::sum_gradients<Unit>(c, begin, end, detail::halves_of(x), detail::halves_of(dy),
                                                   m, sums(t), sums(t) + n);
        }))
      return;
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
    if (detail::by_norm_unit<T>(c, false, [&]<class Unit> {
          detail::narrow_norm::write_gradients<Unit>(c, begin, end, detail::halves_of(x),
                                                     detail::halves_of(dy), m, detail::halves_of(dx));
        }))
      return;
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
