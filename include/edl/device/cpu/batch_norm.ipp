// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/device/cpu/batch_norm.hpp"

namespace edl {
namespace detail {

template <class T>
using channel_array = Eigen::Array<T, Eigen::Dynamic, 1>;
template <class T>
using channel_view = Eigen::Map<channel_array<T> const>;
template <class T>
using channel_span = Eigen::Map<channel_array<T>>;

/// Channels are taken in parts, so that the sums of one part stay in the device's workspace.
template <class Work>
void for_each_part(std::size_t channels, Work&& work) {
  constexpr std::size_t part = 1024;
  for (std::size_t begin = 0; begin < channels; begin += part)
    work(begin, Eigen::Index(std::min(part, channels - begin)));
}

/// Mean and biased variance of each channel, in one pass over memory: blocks of rows that stay in a cache are
/// summed twice, and blocks joined by Chan's formula (1979), so that a large mean costs no digits of the
/// variance.
template <class T>
void channel_moments(std::size_t rows, std::size_t stride, T const* x, Eigen::Index n, channel_span<T> mean,
                     channel_span<T> variance, T* workspace) {
  constexpr std::size_t block = 64;
  channel_span<T> sum(workspace, n), squares(workspace + n, n);
  mean.setZero();
  variance.setZero();
  for (std::size_t i = 0; i < rows; i += block) {
    std::size_t const end = std::min(i + block, rows);
    sum.setZero();
    for (std::size_t r = i; r < end; ++r) sum += channel_view<T>(x + r * stride, n);
    sum *= T(1) / T(end - i);
    squares.setZero();
    for (std::size_t r = i; r < end; ++r) squares += (channel_view<T>(x + r * stride, n) - sum).square();
    T const share = T(end - i) / T(end);
    sum -= mean;
    mean += sum * share;
    variance += squares + sum.square() * (T(i) * share);
  }
  variance *= T(1) / T(rows);
}

/// y = x · a + b, each channel by its own.
template <class T>
void scale_channels(std::size_t rows, std::size_t stride, T const* x, Eigen::Index n, channel_span<T> a,
                    channel_span<T> b, T* y) {
  for (std::size_t r = 0; r < rows; ++r)
    channel_span<T>(y + r * stride, n) = channel_view<T>(x + r * stride, n) * a + b;
}

/// Gradients of normalising by given statistics or, if `through`, by the batch's own.
template <class T>
void normalise_backward(basic_cpu<T>& cpu, bool through, std::size_t rows, std::size_t channels, view<T> x,
                        view<T> gamma, view<T> dy, view<T> kept, std::span<T> dx, std::span<T> dgamma,
                        std::span<T> dbeta) {
  for_each_part(channels, [&](std::size_t c, Eigen::Index n) {
    channel_view<T> const mean(kept.data() + c, n), inverse(kept.data() + channels + c, n),
        scale(gamma.data() + c, n);
    channel_span<T> sum(dbeta.data() + c, n), product(dgamma.data() + c, n);
    T* const workspace = cpu.left().data();
    channel_span<T> part_sum(workspace, n), part_product(workspace + n, n);
    sum.setZero();
    product.setZero();
    constexpr std::size_t block = 64;
    for (std::size_t i = 0; i < rows;) {
      part_sum.setZero();
      part_product.setZero();
      for (std::size_t const end = std::min(i + block, rows); i < end; ++i) {
        channel_view<T> const g(dy.data() + i * channels + c, n), in(x.data() + i * channels + c, n);
        part_sum += g;
        part_product += g * (in - mean);
      }
      sum += part_sum;
      product += part_product;
    }
    product *= inverse;
    if (dx.empty()) return;
    channel_span<T> a(workspace, n), b(workspace + n, n), d(workspace + 2 * n, n);
    a = scale * inverse;
    if (through) {  // dx = a · (dy − Σdy / N − x̂ · Σ(dy · x̂) / N), as dy · a + x · b + d
      T const share = T(1) / T(rows);
      b = -a * product * inverse * share;
      d = -a * sum * share - b * mean;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      channel_view<T> const g(dy.data() + r * channels + c, n);
      channel_span<T> out(dx.data() + r * channels + c, n);
      if (through)
        out = g * a + channel_view<T>(x.data() + r * channels + c, n) * b + d;
      else
        out = g * a;
    }
  });
}

}  // namespace detail

template <class T>
void batch_norm_train(basic_cpu<T>& cpu, std::size_t rows, std::size_t channels,
                      std::type_identity_t<T> momentum, std::type_identity_t<T> epsilon, reads<T> x,
                      reads<T> gamma, reads<T> beta, writes<T> running_mean, writes<T> running_variance,
                      writes<T> y, writes<T> kept) {
  detail::for_each_part(channels, [&](std::size_t c, Eigen::Index n) {
    detail::channel_span<T> mean(kept.data() + c, n), inverse(kept.data() + channels + c, n);
    detail::channel_span<T> carried_mean(running_mean.data() + c, n), carried(running_variance.data() + c, n);
    detail::channel_moments<T>(rows, channels, x.data() + c, n, mean, inverse, cpu.left().data());
    carried_mean = carried_mean * momentum + mean * (T(1) - momentum);
    carried = carried * momentum + inverse * (T(1) - momentum);
    inverse = (inverse + epsilon).sqrt().inverse();
    detail::channel_span<T> a(cpu.left().data(), n), b(cpu.left().data() + n, n);
    a = detail::channel_view<T>(gamma.data() + c, n) * inverse;
    b = detail::channel_view<T>(beta.data() + c, n) - mean * a;
    detail::scale_channels<T>(rows, channels, x.data() + c, n, a, b, y.data() + c);
  });
}

template <class T>
void batch_norm_evaluate(basic_cpu<T>& cpu, std::size_t rows, std::size_t channels,
                         std::type_identity_t<T> epsilon, reads<T> x, reads<T> gamma, reads<T> beta,
                         reads<T> running_mean, reads<T> running_variance, writes<T> y, writes<T> kept) {
  detail::for_each_part(channels, [&](std::size_t c, Eigen::Index n) {
    detail::channel_span<T> mean(kept.data() + c, n), inverse(kept.data() + channels + c, n);
    mean = detail::channel_view<T>(running_mean.data() + c, n);
    inverse = (detail::channel_view<T>(running_variance.data() + c, n) + epsilon).sqrt().inverse();
    detail::channel_span<T> a(cpu.left().data(), n), b(cpu.left().data() + n, n);
    a = detail::channel_view<T>(gamma.data() + c, n) * inverse;
    b = detail::channel_view<T>(beta.data() + c, n) - mean * a;
    detail::scale_channels<T>(rows, channels, x.data() + c, n, a, b, y.data() + c);
  });
}

template <class T>
void batch_norm_train_backward(basic_cpu<T>& cpu, std::size_t rows, std::size_t channels, reads<T> x,
                               reads<T> gamma, reads<T> dy, reads<T> kept, writes<T> dx, writes<T> dgamma,
                               writes<T> dbeta) {
  detail::normalise_backward<T>(cpu, true, rows, channels, x, gamma, dy, kept, dx, dgamma, dbeta);
}

template <class T>
void batch_norm_evaluate_backward(basic_cpu<T>& cpu, std::size_t rows, std::size_t channels, reads<T> x,
                                  reads<T> gamma, reads<T> dy, reads<T> kept, writes<T> dx, writes<T> dgamma,
                                  writes<T> dbeta) {
  detail::normalise_backward<T>(cpu, false, rows, channels, x, gamma, dy, kept, dx, dgamma, dbeta);
}

#ifndef EDL_HEADER_ONLY
template void batch_norm_train(basic_cpu<float>&, std::size_t, std::size_t, float, float, view<float>,
                               view<float>, view<float>, std::span<float>, std::span<float>, std::span<float>,
                               std::span<float>);
template void batch_norm_evaluate(basic_cpu<float>&, std::size_t, std::size_t, float, view<float>,
                                  view<float>, view<float>, view<float>, view<float>, std::span<float>,
                                  std::span<float>);
template void batch_norm_train_backward(basic_cpu<float>&, std::size_t, std::size_t, view<float>, view<float>,
                                        view<float>, view<float>, std::span<float>, std::span<float>,
                                        std::span<float>);
template void batch_norm_evaluate_backward(basic_cpu<float>&, std::size_t, std::size_t, view<float>,
                                           view<float>, view<float>, view<float>, std::span<float>,
                                           std::span<float>, std::span<float>);
template void batch_norm_train(basic_cpu<double>&, std::size_t, std::size_t, double, double, view<double>,
                               view<double>, view<double>, std::span<double>, std::span<double>,
                               std::span<double>, std::span<double>);
template void batch_norm_evaluate(basic_cpu<double>&, std::size_t, std::size_t, double, view<double>,
                                  view<double>, view<double>, view<double>, view<double>, std::span<double>,
                                  std::span<double>);
template void batch_norm_train_backward(basic_cpu<double>&, std::size_t, std::size_t, view<double>,
                                        view<double>, view<double>, view<double>, std::span<double>,
                                        std::span<double>, std::span<double>);
template void batch_norm_evaluate_backward(basic_cpu<double>&, std::size_t, std::size_t, view<double>,
                                           view<double>, view<double>, view<double>, std::span<double>,
                                           std::span<double>, std::span<double>);
#endif

}  // namespace edl
