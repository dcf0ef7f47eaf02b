// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/vector_functions.hpp"
#include "edl/core/error.hpp"

namespace edl {
namespace detail {

inline constexpr std::size_t embedding_work = 16 * 1024;  // numbers per thread for which a thread pays

[[noreturn]] inline void refuse_id(embedding_geometry const& g, double id, std::size_t position) {
  auto const of_sample = std::size_t(g.ids);
  throw error(
      fmt::format("embedding: {} (number {} of sample {}) is not an id of a vocabulary of {}: ids are whole "
                  "numbers from 0 to {}; correct the data, or the layer's vocabulary",
                  id, position % of_sample, position / of_sample, g.vocabulary, g.vocabulary - 1));
}

}  // namespace detail

template <class T>
void basic_cpu<T>::embedding_forward(embedding_geometry const& g, int, view<T> ids, view<T> table,
                                     std::span<T> y) {
  auto const bad = std::ranges::find_if_not(ids, [&](T id) { return g.has(id); });
  if (bad != ids.end()) detail::refuse_id(g, double(*bad), std::size_t(bad - ids.begin()));
  auto const width = std::size_t(g.width);
  int const parts = this->parts(y.size(), detail::embedding_work);
  this->share(ids.size(), parts, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i)
      std::copy_n(table.data() + std::size_t(ids[i]) * width, width, y.data() + i * width);
  });
}

template <class T>
void basic_cpu<T>::embedding_backward(embedding_geometry const& g, int, view<T> ids, view<T> dy,
                                      std::span<T> dx, std::span<T> dtable) {
  auto const width = std::size_t(g.width);
  std::ranges::fill(dx, T(0));
  std::size_t const zeros = g.adds_gradient ? 0 : dtable.size();
  this->share(zeros, this->parts(zeros, detail::embedding_work),
              [&](std::size_t begin, std::size_t end, int) {
                std::fill(dtable.begin() + std::ptrdiff_t(begin), dtable.begin() + std::ptrdiff_t(end), T(0));
              });
  // A row belongs to one thread, so that its terms are added in batch order. Rows are assigned round-robin,
  // because frequent ids are often neighbours.
  int const parts = this->parts(dy.size(), detail::embedding_work);
  this->team().run(parts, [&](int t) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!g.has(ids[i])) continue;
      auto const row = std::size_t(ids[i]);
      if (row % std::size_t(parts) != std::size_t(t)) continue;
      T* __restrict const sum = dtable.data() + row * width;
      T const* const more = dy.data() + i * width;
      for (std::size_t k = 0; k < width; ++k) sum[k] += more[k];
    }
  });
}

template <class T>
void basic_cpu<T>::factorization_forward(std::size_t samples, std::size_t rows, std::size_t width, view<T> x,
                                         std::span<T> y) {
  this->share(samples, this->parts(x.size(), detail::embedding_work),
              [&](std::size_t begin, std::size_t end, int) {
                for (std::size_t s = begin; s < end; ++s) {
                  T const* const v = x.data() + s * rows * width;
                  y[s] = detail::sum_by_lanes<T>(width,
                                                 [&]<class V>(std::size_t k) {
                                                   V sum{}, squares{};
                                                   for (std::size_t i = 0; i < rows; ++i) {
                                                     V const each = detail::load<V>(v + i * width + k);
                                                     sum += each, squares += each * each;
                                                   }
                                                   return V(sum * sum - squares);
                                                 }) /
                         2;
                }
              });
}

template <class T>
void basic_cpu<T>::factorization_backward(std::size_t samples, std::size_t rows, std::size_t width, view<T> x,
                                          view<T> dy, std::span<T> dx) {
  this->share(
      samples, this->parts(x.size(), detail::embedding_work), [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t s = begin; s < end; ++s) {
          T const* const v = x.data() + s * rows * width;
          T* const dv = dx.data() + s * rows * width;
          detail::by_lanes<T>(width, [&]<class V>(std::size_t k) {
            V sum{};
            for (std::size_t i = 0; i < rows; ++i) sum += detail::load<V>(v + i * width + k);
            for (std::size_t i = 0; i < rows; ++i)
              detail::store<V>(dv + i * width + k, V((sum - detail::load<V>(v + i * width + k)) * dy[s]));
          });
        }
      });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::embedding_forward(embedding_geometry const&, int, view<float>, view<float>,
                                                  std::span<float>);
template void basic_cpu<double>::embedding_forward(embedding_geometry const&, int, view<double>, view<double>,
                                                   std::span<double>);
template void basic_cpu<float>::embedding_backward(embedding_geometry const&, int, view<float>, view<float>,
                                                   std::span<float>, std::span<float>);
template void basic_cpu<double>::embedding_backward(embedding_geometry const&, int, view<double>,
                                                    view<double>, std::span<double>, std::span<double>);
template void basic_cpu<float>::factorization_forward(std::size_t, std::size_t, std::size_t, view<float>,
                                                      std::span<float>);
template void basic_cpu<double>::factorization_forward(std::size_t, std::size_t, std::size_t, view<double>,
                                                       std::span<double>);
template void basic_cpu<float>::factorization_backward(std::size_t, std::size_t, std::size_t, view<float>,
                                                       view<float>, std::span<float>);
template void basic_cpu<double>::factorization_backward(std::size_t, std::size_t, std::size_t, view<double>,
                                                        view<double>, std::span<double>);
#endif

}  // namespace edl
