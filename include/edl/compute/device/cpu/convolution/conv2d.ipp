// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/bfloat16.hpp"
#include "edl/compute/device/cpu/convolution/tiled_conv2d.hpp"
#include "edl/compute/device/cpu/convolution/winograd.hpp"
#include "edl/compute/device/cpu/convolution/winograd_wide.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/int8.hpp"
#include "edl/compute/device/cpu/kernel_trial.hpp"
#include "edl/compute/device/cpu/onednn/onednn_conv2d.hpp"
#include "edl/compute/device/cpu/rows.hpp"

namespace edl {
namespace detail {

/// Visits the runs of a group's channels that one sample and its matrix of patches (positions × patch) share.
/// It calls run(element of the sample, element of the matrix, length), and gap(element of the matrix, length)
/// for what lies outside the sample.
template <class Run, class Gap>
void for_each_run(conv_geometry const& g, int group, Run&& run, Gap&& gap) {
  std::ptrdiff_t const all = g.in.channels, own = g.in.channels / g.groups, width = g.kernel.width;
  std::ptrdiff_t at = 0;
  for (int i = 0; i < g.out.height; ++i)
    for (int j = 0; j < g.out.width; ++j) {
      std::ptrdiff_t const left = std::ptrdiff_t(j) * g.stride.width - g.before.width;
      std::ptrdiff_t const begin = std::clamp<std::ptrdiff_t>(-left, 0, width);
      std::ptrdiff_t const end = std::clamp<std::ptrdiff_t>(g.in.width - left, begin, width);
      for (int a = 0; a < g.kernel.height; ++a, at += width * own) {
        std::ptrdiff_t const row = std::ptrdiff_t(i) * g.stride.height - g.before.height + a;
        if (row < 0 || row >= g.in.height) {
          gap(at, width * own);
          continue;
        }
        if (begin > 0) gap(at, begin * own);
        if (end < width) gap(at + end * own, (width - end) * own);
        std::ptrdiff_t const from = (row * g.in.width + left) * all + group * own;
        if (own == all)
          run(from + begin * own, at + begin * own, (end - begin) * own);
        else
          for (std::ptrdiff_t b = begin; b < end; ++b) run(from + b * all, at + b * own, own);
      }
    }
}

template <class T>
void gather_patches(conv_geometry const& g, int group, T const* x, T* patches) {
  for_each_run(
      g, group,
      [&](std::ptrdiff_t from, std::ptrdiff_t at, std::ptrdiff_t n) {
        std::copy_n(x + from, n, patches + at);
      },
      [&](std::ptrdiff_t at, std::ptrdiff_t n) { std::fill_n(patches + at, n, T(0)); });
}

/// The transpose of `gather_patches`: adds every element to where it came from.
template <class T>
void scatter_patches(conv_geometry const& g, int group, T const* patches, T* x) {
  using array = Eigen::Array<T, Eigen::Dynamic, 1>;
  for_each_run(
      g, group,
      [&](std::ptrdiff_t to, std::ptrdiff_t at, std::ptrdiff_t n) {
        Eigen::Map<array>(x + to, n) += Eigen::Map<array const>(patches + at, n);
      },
      [](std::ptrdiff_t, std::ptrdiff_t) {});
}

/// Products of a share of the batch: work(first sample, samples, group), some samples at a time.
template <class Work>
void for_each_product(conv_geometry const& g, std::size_t begin, std::size_t end, Work&& work) {
  auto const most = std::size_t(g.samples_at_once(int(end - begin)));
  for (std::size_t first = begin; first < end; first += most)
    for (int group = 0; group < g.groups; ++group) work(first, std::min(most, end - first), group);
}

/// The matrix of patches of some samples: the samples themselves, or gathered into the thread's own memory.
template <class T>
T const* patches_of(basic_cpu<T>& cpu, int thread, conv_geometry const& g, int group, std::size_t samples,
                    T const* x) {
  if (g.pointwise()) return x;
  std::size_t const size = g.positions() * g.patch();
  T* const patches = cpu.room(thread, 0, samples * size).data();
  for (std::size_t s = 0; s < samples; ++s) gather_patches(g, group, x + s * g.in.size(), patches + s * size);
  return patches;
}

template <class T>
void own_conv2d_forward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, activation f, view<T> x,
                        view<T> kernel, view<T> bias, std::span<T> y) {
  auto const filters = std::size_t(g.out.channels), own = filters / std::size_t(g.groups);
  std::size_t const positions = g.positions(), patch = g.patch();
  x = factor(cpu, 2, x);
  kernel = factor(cpu, 3, kernel);
  std::ranges::fill(y, T(0));
  cpu.share(
      std::size_t(batch), cpu.parts(std::size_t(batch), 1), [&](std::size_t begin, std::size_t end, int t) {
        for_each_product(g, begin, end, [&](std::size_t first, std::size_t samples, int group) {
          T const* const patches = patches_of(cpu, t, g, group, samples, x.data() + first * g.in.size());
          std::size_t const offset = std::size_t(group) * own;
          multiply_add<T>(cpu, t, samples * positions, own, patch, {patches, patch},
                          {kernel.data() + offset, filters}, y.data() + first * g.out.size() + offset,
                          filters);
        });
      });
  if (!bias.empty() || f != activation::none)
    finish_rows(cpu, std::size_t(batch) * positions, filters, f, bias, y);
}

template <class T>
void own_conv2d_backward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, view<T> x, view<T> kernel,
                         view<T> dy, std::span<T> dx, std::span<T> dkernel, std::span<T> dbias) {
  auto const filters = std::size_t(g.out.channels), own = filters / std::size_t(g.groups);
  std::size_t const positions = g.positions(), patch = g.patch();
  if (!dbias.empty()) sum_rows(cpu, std::size_t(batch) * positions, filters, dy, dbias);
  if (!dkernel.empty()) x = factor(cpu, 2, x);
  if (!dx.empty()) kernel = factor(cpu, 3, kernel);
  dy = factor(cpu, 4, dy);
  std::ranges::fill(dx, T(0));
  int const parts = cpu.parts(std::size_t(batch), 1);
  auto const sums = [&](int t) { return t == 0 ? dkernel.data() : cpu.room(t, 1, dkernel.size()).data(); };
  cpu.share(std::size_t(batch), parts, [&](std::size_t begin, std::size_t end, int t) {
    std::fill_n(sums(t), dkernel.size(), T(0));
    for_each_product(g, begin, end, [&](std::size_t first, std::size_t samples, int group) {
      std::size_t const offset = std::size_t(group) * own, rows = samples * positions;
      T const* const from = dy.data() + first * g.out.size() + offset;
      if (!dkernel.empty()) {
        T const* const patches = patches_of(cpu, t, g, group, samples, x.data() + first * g.in.size());
        multiply_add<T>(cpu, t, patch, own, rows, {patches, patch, true}, {from, filters}, sums(t) + offset,
                        filters);
      }
      if (dx.empty()) return;
      T* const to = dx.data() + first * g.in.size();
      T* const into = g.pointwise() ? to : cpu.room(t, 0, rows * patch).data();
      if (!g.pointwise()) std::fill_n(into, rows * patch, T(0));
      multiply_add<T>(cpu, t, rows, patch, own, {from, filters}, {kernel.data() + offset, filters, true},
                      into, patch);
      if (!g.pointwise())
        for (std::size_t s = 0; s < samples; ++s)
          scatter_patches(g, group, into + s * positions * patch, to + s * g.in.size());
    });
  });
  add_parts(cpu, parts, dkernel.size(), sums);
}

/// The same of samples of which some are narrow.
template <class T>
void own_conv2d_forward_narrow(basic_cpu<T>& cpu, conv_geometry const& g, int batch, activation f, view<T> x,
                               view<T> kernel, view<T> bias, std::span<T> y) {
  conv_geometry wide = g;
  wide.narrow = {};
  auto const n = std::size_t(batch);
  x = widened(cpu, 5, n * g.in.size(), x, g.narrow.in);
  narrowed(cpu, 6, n * g.out.size(), y, g.narrow.out,
           [&](std::span<T> to) { own_conv2d_forward(cpu, wide, batch, f, x, kernel, bias, to); });
}
template <class T>
void own_conv2d_backward_narrow(basic_cpu<T>& cpu, conv_geometry const& g, int batch, view<T> x,
                                view<T> kernel, view<T> dy, std::span<T> dx, std::span<T> dkernel,
                                std::span<T> dbias) {
  conv_geometry wide = g;
  wide.narrow = {};
  auto const n = std::size_t(batch);
  x = widened(cpu, 5, n * g.in.size(), x, g.narrow.in);
  dy = widened(cpu, 6, n * g.out.size(), dy, g.narrow.out);
  narrowed(cpu, 7, n * g.in.size(), dx, g.narrow.in, [&](std::span<T> to) {
    own_conv2d_backward(cpu, wide, batch, x, kernel, dy, to, dkernel, dbias);
  });
}

inline kernel_key key_of(std::string_view pass, conv_geometry const& g, int batch) {
  return {pass,
          {g.in.height, g.in.width, g.in.channels, g.out.height, g.out.width, g.out.channels, g.kernel.height,
           g.kernel.width, g.stride.height, g.stride.width, g.before.height, g.before.width, g.groups,
           int(g.narrow.in) + 2 * int(g.narrow.out)},
          batch};
}

constexpr std::string_view weights_pass = "conv2d-weights";

/// The way of a pass that is told, or found out: run(way) is false where it cannot be gone, and right(way)
/// where it leads astray.
template <class Run, class Right>
conv_way way_of(basic_cpu<float>& cpu, std::string_view pass, conv_geometry const& g, int batch, Run&& run,
                Right&& right) {
  if (!cpu.libraries() || !has_onednn()) return conv_way::own;
  bool const narrow = g.narrow.any();
  bool const unit = narrow && tiled::fits(g), by_winograd = narrow && winograd::fits(g);
  if (narrow && (!cpu.rounds() || (!unit && !by_winograd))) return conv_way::direct;
  bool const of_kernel = pass == weights_pass;
  // Where kernels are kept, none whose layout cannot be.
  bool const wide = !of_kernel && !cpu.rounds() && winograd_wide::fits(g);
  conv_way const rule = cpu.kernels() == kernels::direct             ? conv_way::direct
                        : unit && tiled::faster(g, batch, of_kernel) ? conv_way::tiled
                        : !unit && by_winograd && !cpu.keeps() && winograd::faster(g, of_kernel)
                            ? conv_way::winograd_narrow
                        : cpu.rounds()                            ? conv_way::direct
                        : wide && winograd_wide::faster(g, batch) ? conv_way::winograd_wide
                        : cpu.keeps()                             ? conv_way::direct
                                      : onednn_conv2d_rule(g, batch, cpu.threads());
  // Not worth trying: our own loops, in float32, against Winograd's algorithm or products of bfloat16, and to
  // cut the channels of large maps.
  auto const hopeless = [&](conv_way way) {
    if (narrow)
      return way != conv_way::direct && !(way == conv_way::tiled && unit) &&
             !(way == conv_way::winograd_narrow && by_winograd);
    return way == conv_way::winograd_narrow || way == conv_way::tiled ||
           (way == conv_way::winograd_wide && !wide) ||
           (way == conv_way::own && (rule != conv_way::direct || cpu.rounds())) ||
           (way == conv_way::winograd_by_channels && g.positions() > 64);
  };
  return conv_way(cpu.pick(
      key_of(pass, g, batch), conv_ways, int(rule),
      [&](int way) -> bool { return !hopeless(conv_way(way)) && run(conv_way(way)); },
      [&](int way) -> bool { return right(conv_way(way)); }));
}

inline conv_way forward_way(basic_cpu<float>& cpu, conv_geometry const& g, int batch, activation f,
                            view<float> x, view<float> kernel, view<float> bias, std::span<float> y) {
  auto const run = [&](conv_way way, activation then, view<float> in, view<float> weights, view<float> b) {
    if (way == conv_way::winograd_narrow)
      return winograd::forward(cpu, g, batch, then, in, weights, b, y), true;
    if (way == conv_way::winograd_wide)
      return winograd_wide::forward(cpu, g, batch, then, in, weights, b, y), true;
    if (way == conv_way::tiled) return tiled::forward(cpu, g, batch, then, in, weights, b, y), true;
    if (way != conv_way::own) return onednn_conv2d_forward(cpu, g, batch, then, in, weights, b, y, way);
    own_conv2d_forward<float>(cpu, g, batch, then, in, weights, b, y);
    return true;
  };
  return way_of(
      cpu, "conv2d-forward", g, batch, [&](conv_way way) { return run(way, f, x, kernel, bias); },
      [&](conv_way way) {
        conv_trial const t(g, batch);
        poison(y);
        return run(way, activation::none, t.x.taken(), t.kernel.taken(), {}) && t.right_forward(y);
      });
}
inline conv_way weights_way(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x,
                            view<float> kernel, view<float> dy, std::span<float> dkernel,
                            std::span<float> dbias) {
  auto const run = [&](conv_way way, view<float> in, view<float> weights, view<float> out) {
    if (way == conv_way::winograd_narrow)
      return winograd::to_kernel(cpu, g, batch, in, out, dkernel, dbias), true;
    if (way == conv_way::tiled) return tiled::to_kernel(cpu, g, batch, in, out, dkernel, dbias), true;
    if (way != conv_way::own)
      return onednn_conv2d_backward(cpu, g, batch, in, weights, out, {}, dkernel, dbias, way, way);
    own_conv2d_backward<float>(cpu, g, batch, in, weights, out, {}, dkernel, dbias);
    return true;
  };
  return way_of(
      cpu, weights_pass, g, batch, [&](conv_way way) { return run(way, x, kernel, dy); },
      [&](conv_way way) {
        conv_trial const t(g, batch);
        poison(dkernel);
        return run(way, t.x.taken(), t.kernel.taken(), t.dy.taken()) && t.right_weights(dkernel);
      });
}
inline conv_way data_way(basic_cpu<float>& cpu, conv_geometry const& g, int batch, view<float> x,
                         view<float> kernel, view<float> dy, std::span<float> dx) {
  auto const run = [&](conv_way way, view<float> in, view<float> weights, view<float> out) {
    if (way == conv_way::winograd_narrow) return winograd::to_input(cpu, g, batch, weights, out, dx), true;
    if (way == conv_way::winograd_wide) return winograd_wide::to_input(cpu, g, batch, weights, out, dx), true;
    if (way == conv_way::tiled) return tiled::to_input(cpu, g, batch, weights, out, dx), true;
    return way != conv_way::own &&
           onednn_conv2d_backward(cpu, g, batch, in, weights, out, dx, {}, {}, way, way);
  };
  return way_of(
      cpu, "conv2d-data", g, batch, [&](conv_way way) { return run(way, x, kernel, dy); },
      [&](conv_way way) {
        conv_trial const t(g, batch);
        poison(dx);
        return run(way, t.x.taken(), t.kernel.taken(), t.dy.taken()) && t.right_data(dx);
      });
}

}  // namespace detail

template <class T>
void basic_cpu<T>::conv2d_forward(conv_geometry const& g, int batch, activation f, view<T> x, view<T> kernel,
                                  view<T> bias, std::span<T> y) {
  using detail::conv_way;
  if constexpr (std::same_as<T, float>)
    if (quantises() && g.patch() <= detail::most_int8_terms)
      return detail::int8_forward(*this, g, batch, f, x, kernel, bias, y);
  if constexpr (std::same_as<T, float>)
    for (conv_way way : {detail::forward_way(*this, g, batch, f, x, kernel, bias, y), conv_way::direct}) {
      if (way == conv_way::own) break;
      if (way == conv_way::winograd_narrow)
        return detail::winograd::forward(*this, g, batch, f, x, kernel, bias, y);
      if (way == conv_way::winograd_wide)
        return detail::winograd_wide::forward(*this, g, batch, f, x, kernel, bias, y);
      if (way == conv_way::tiled) return detail::tiled::forward(*this, g, batch, f, x, kernel, bias, y);
      if (detail::onednn_conv2d_forward(*this, g, batch, f, x, kernel, bias, y, way)) return;
    }
  detail::own_conv2d_forward_narrow<T>(*this, g, batch, f, x, kernel, bias, y);
}

template <class T>
void basic_cpu<T>::conv2d_backward(conv_geometry const& g, int batch, view<T> x, view<T> kernel, view<T> dy,
                                   std::span<T> dx, std::span<T> dkernel, std::span<T> dbias) {
  using detail::conv_way;
  if (dkernel.empty()) {  // what a kernel that is not trained leaves to do
    if (!dbias.empty()) {
      auto const filters = std::size_t(g.out.channels);
      auto const n = std::size_t(batch) * g.positions();
      sum_rows<T>(*this, n, filters, detail::widened<T>(*this, 6, n * filters, dy, g.narrow.out), dbias);
      dbias = {};
    }
    if (dx.empty()) return;
  }
  if constexpr (std::same_as<T, float>) {
    conv_way const weights =
        dkernel.empty() ? conv_way::own : detail::weights_way(*this, g, batch, x, kernel, dy, dkernel, dbias);
    conv_way const data = dx.empty() ? weights : detail::data_way(*this, g, batch, x, kernel, dy, dx);
    if (weights == conv_way::winograd_narrow || weights == conv_way::tiled) {
      (weights == conv_way::tiled ? detail::tiled::to_kernel : detail::winograd::to_kernel)(
          *this, g, batch, x, dy, dkernel, dbias);
      dkernel = dbias = {};
    }
    bool const of_ours =
        data == conv_way::winograd_narrow || data == conv_way::winograd_wide || data == conv_way::tiled;
    if (!dx.empty() && of_ours) {
      (data == conv_way::tiled           ? detail::tiled::to_input
       : data == conv_way::winograd_wide ? detail::winograd_wide::to_input
                                         : detail::winograd::to_input)(*this, g, batch, kernel, dy, dx);
      dx = {};
    }
    if (dkernel.empty() && dx.empty()) return;
    auto const by = [&](std::span<T> in, std::span<T> w, std::span<T> b, conv_way first, conv_way second) {
      return detail::onednn_conv2d_backward(*this, g, batch, x, kernel, dy, in, w, b, first, second);
    };
    if (!dkernel.empty() && weights != conv_way::own) {
      bool const both = data != conv_way::own;
      if (by(both ? dx : std::span<T>(), dkernel, dbias, weights, both ? data : weights)) {
        if (both) return;
        dkernel = dbias = {};
      } else if (by(dx, dkernel, dbias, conv_way::direct, conv_way::direct)) {
        return;
      }
    } else if (data != conv_way::own && by(dx, {}, {}, data, data)) {
      if (dkernel.empty()) return;
      dx = {};
    }
  }
  detail::own_conv2d_backward_narrow<T>(*this, g, batch, x, kernel, dy, dx, dkernel, dbias);
}

template <class T>
std::string basic_cpu<T>::describe_conv2d(conv_geometry const& g, int batch) {
  using detail::conv_way;
  if (quantises() && g.patch() <= detail::most_int8_terms) return detail::describe_int8();
  std::string const own = g.pointwise() ? "Eigen's product" : "patches, Eigen's product";
  if constexpr (std::same_as<T, float>) {
    // Measured choices are made on the spot, of zeros.
    auto const n = std::size_t(batch);
    std::vector<T> x(n * g.in.size()), y(n * g.out.size()), w(g.patch() * std::size_t(g.out.channels)), b;
    auto const name = [&](conv_way way) {
      bool const rounded = rounds() && (way == conv_way::own || way == conv_way::direct);
      if (way == conv_way::winograd_narrow) return std::string("Winograd's products, bfloat16");
      if (way == conv_way::winograd_wide) return std::string("Winograd's products");
      if (way == conv_way::tiled) return std::string("matrix unit, bfloat16");
      return (way == conv_way::own ? own : "oneDNN, " + std::string(detail::conv_ways[std::size_t(way)])) +
             (rounded ? ", bfloat16" : "");
    };
    std::string const forward = name(detail::forward_way(*this, g, batch, activation::none, x, w, b, y)),
                      weights = name(detail::weights_way(*this, g, batch, x, w, y, w, b)),
                      data = name(detail::data_way(*this, g, batch, x, w, y, std::span<float>(x)));
    return forward == weights && weights == data ? forward : forward + " | " + weights + " | " + data;
  }
  return own;
}

#ifndef EDL_HEADER_ONLY
template std::string basic_cpu<float>::describe_conv2d(conv_geometry const&, int);
template std::string basic_cpu<double>::describe_conv2d(conv_geometry const&, int);
template void basic_cpu<float>::conv2d_forward(conv_geometry const&, int, activation, view<float>,
                                               view<float>, view<float>, std::span<float>);
template void basic_cpu<double>::conv2d_forward(conv_geometry const&, int, activation, view<double>,
                                                view<double>, view<double>, std::span<double>);
template void basic_cpu<float>::conv2d_backward(conv_geometry const&, int, view<float>, view<float>,
                                                view<float>, std::span<float>, std::span<float>,
                                                std::span<float>);
template void basic_cpu<double>::conv2d_backward(conv_geometry const&, int, view<double>, view<double>,
                                                 view<double>, std::span<double>, std::span<double>,
                                                 std::span<double>);
#endif

}  // namespace edl
