// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/device/cpu/conv2d.hpp"
#include "edl/device/cpu/gemm.hpp"
#include "edl/device/cpu/rows.hpp"

namespace edl {
namespace detail {

/// Visits the runs of a group's channels that one sample and its matrix of patches (positions × patch) share:
/// run(element of the sample, element of the matrix, length), and gap(element of the matrix, length) for what
/// lies outside the sample.
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

/// A run of samples and a group: what one product works on.
template <class Work>
void for_each_product(conv_geometry const& g, int batch, Work&& work) {
  int const most = g.samples_at_once(batch);
  for (int first = 0; first < batch; first += most)
    for (int group = 0; group < g.groups; ++group)
      work(std::size_t(first), std::size_t(std::min(most, batch - first)), group);
}

}  // namespace detail

template <class T>
void conv2d_forward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, reads<T> x, reads<T> kernel,
                    reads<T> bias, writes<T> y, writes<T> scratch) {
  auto const filters = std::size_t(g.out.channels), own = filters / std::size_t(g.groups);
  std::size_t const positions = g.positions(), patch = g.patch();
  fill_rows(cpu, std::size_t(batch) * positions, filters, bias, y);
  detail::for_each_product(g, batch, [&](std::size_t first, std::size_t samples, int group) {
    T const* patches = x.data() + first * g.in.size();
    if (!g.pointwise()) {
      for (std::size_t s = 0; s < samples; ++s)
        detail::gather_patches(g, group, x.data() + (first + s) * g.in.size(),
                               scratch.data() + s * positions * patch);
      patches = scratch.data();
    }
    std::size_t const offset = std::size_t(group) * own;
    multiply_add<T>(cpu, samples * positions, own, patch, {patches, patch}, {kernel.data() + offset, filters},
                    y.data() + first * g.out.size() + offset, filters);
  });
}

template <class T>
void conv2d_backward(basic_cpu<T>& cpu, conv_geometry const& g, int batch, reads<T> x, reads<T> kernel,
                     reads<T> dy, writes<T> dx, writes<T> dkernel, writes<T> dbias, writes<T> scratch) {
  auto const filters = std::size_t(g.out.channels), own = filters / std::size_t(g.groups);
  std::size_t const positions = g.positions(), patch = g.patch();
  if (!dbias.empty()) sum_rows(cpu, std::size_t(batch) * positions, filters, dy, dbias);
  std::ranges::fill(dkernel, T(0));
  std::ranges::fill(dx, T(0));
  detail::for_each_product(g, batch, [&](std::size_t first, std::size_t samples, int group) {
    std::size_t const offset = std::size_t(group) * own, rows = samples * positions;
    T const* const in = x.data() + first * g.in.size();
    T const* const from = dy.data() + first * g.out.size() + offset;
    T const* patches = in;
    if (!g.pointwise()) {
      for (std::size_t s = 0; s < samples; ++s)
        detail::gather_patches(g, group, in + s * g.in.size(), scratch.data() + s * positions * patch);
      patches = scratch.data();
    }
    multiply_add<T>(cpu, patch, own, rows, {patches, patch, true}, {from, filters}, dkernel.data() + offset,
                    filters);
    if (dx.empty()) return;
    T* const to = dx.data() + first * g.in.size();
    T* const into = g.pointwise() ? to : scratch.data();
    if (!g.pointwise()) std::fill_n(into, rows * patch, T(0));
    multiply_add<T>(cpu, rows, patch, own, {from, filters}, {kernel.data() + offset, filters, true}, into,
                    patch);
    if (!g.pointwise())
      for (std::size_t s = 0; s < samples; ++s)
        detail::scatter_patches(g, group, into + s * positions * patch, to + s * g.in.size());
  });
}

#ifndef EDL_HEADER_ONLY
template void conv2d_forward(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                             view<float>, std::span<float>, std::span<float>);
template void conv2d_forward(basic_cpu<double>&, conv_geometry const&, int, view<double>, view<double>,
                             view<double>, std::span<double>, std::span<double>);
template void conv2d_backward(basic_cpu<float>&, conv_geometry const&, int, view<float>, view<float>,
                              view<float>, std::span<float>, std::span<float>, std::span<float>,
                              std::span<float>);
template void conv2d_backward(basic_cpu<double>&, conv_geometry const&, int, view<double>, view<double>,
                              view<double>, std::span<double>, std::span<double>, std::span<double>,
                              std::span<double>);
#endif

}  // namespace edl
