// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace edl {
namespace detail {

/// Calls work(sample) for all samples, divided among threads.
template <class T, class Work>
void each_masked(basic_cpu<T>& cpu, kept_places const& places, std::size_t channels, Work&& work) {
  std::size_t const samples = places.counts.size(),
                    elements = samples * std::size_t(places.places) * channels;
  cpu.share(samples, std::min(cpu.parts(samples, 1), cpu.parts(elements, 16 * 1024)),
            [&](std::size_t begin, std::size_t end, int) {
              for (std::size_t sample = begin; sample < end; ++sample) work(sample);
            });
}

}  // namespace detail

template <class T>
void basic_cpu<T>::masked_average_pool_forward(kept_places const& places, std::size_t channels, view<T> x,
                                               std::span<T> y) {
  detail::each_masked(*this, places, channels, [&](std::size_t sample) {
    auto const kept = places.of(sample);
    T* const mean = y.data() + sample * channels;
    std::fill_n(mean, channels, T(0));
    for (std::int32_t const place : kept) {
      T const* const from = x.data() + (sample * std::size_t(places.places) + std::size_t(place)) * channels;
      for (std::size_t k = 0; k < channels; ++k) mean[k] += from[k];
    }
    T const share = T(1) / T(std::max<std::size_t>(kept.size(), 1));
    for (std::size_t k = 0; k < channels; ++k) mean[k] *= share;
  });
}

template <class T>
void basic_cpu<T>::masked_average_pool_backward(kept_places const& places, std::size_t channels, view<T> dy,
                                                std::span<T> dx) {
  detail::each_masked(*this, places, channels, [&](std::size_t sample) {
    auto const kept = places.of(sample);
    std::size_t const first = sample * std::size_t(places.places);
    T const *const slope = dy.data() + sample * channels,
                   share = T(1) / T(std::max<std::size_t>(kept.size(), 1));
    for (std::int32_t const place : kept) {
      T* const to = dx.data() + (first + std::size_t(place)) * channels;
      for (std::size_t k = 0; k < channels; ++k) to[k] = share * slope[k];
    }
    places.each_padded(sample, [&](std::size_t place) {
      std::fill_n(dx.data() + (first + place) * channels, channels, T(0));
    });
  });
}

template <class T>
void basic_cpu<T>::masked_max_pool_forward(kept_places const& places, std::size_t channels, view<T> x,
                                           std::span<T> y) {
  detail::each_masked(*this, places, channels, [&](std::size_t sample) {
    auto const kept = places.of(sample);
    T* const most = y.data() + sample * channels;
    std::fill_n(most, channels, T(0));
    for (std::size_t i = 0; i < kept.size(); ++i) {
      T const* const here =
          x.data() + (sample * std::size_t(places.places) + std::size_t(kept[i])) * channels;
      for (std::size_t k = 0; k < channels; ++k)
        most[k] = i == 0 || here[k] > most[k] || here[k] != here[k] ? here[k] : most[k];
    }
  });
}

template <class T>
void basic_cpu<T>::masked_max_pool_backward(kept_places const& places, std::size_t channels, view<T> x,
                                            view<T>, view<T> dy, std::span<T> dx) {
  detail::each_masked(*this, places, channels, [&](std::size_t sample) {
    std::size_t const first = sample * std::size_t(places.places) * channels;
    auto const kept = places.of(sample);
    std::fill_n(dx.data() + first, std::size_t(places.places) * channels, T(0));
    if (kept.empty()) return;
    for (std::size_t k = 0; k < channels; ++k) {
      // Reads x itself, because the stored result may have been rounded when x was not, or the other way
      // round.
      auto const at = [&](std::int32_t place) { return first + std::size_t(place) * channels + k; };
      std::size_t most = at(kept.front());
      for (std::int32_t const place : kept) {
        T const here = x[at(place)];
        if (here > x[most] || here != here) most = at(place);
      }
      if (x[most] == x[most]) dx[most] = dy[sample * channels + k];
    }
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::masked_average_pool_forward(kept_places const&, std::size_t, view<float>,
                                                            std::span<float>);
template void basic_cpu<double>::masked_average_pool_forward(kept_places const&, std::size_t, view<double>,
                                                             std::span<double>);
template void basic_cpu<float>::masked_average_pool_backward(kept_places const&, std::size_t, view<float>,
                                                             std::span<float>);
template void basic_cpu<double>::masked_average_pool_backward(kept_places const&, std::size_t, view<double>,
                                                              std::span<double>);
template void basic_cpu<float>::masked_max_pool_forward(kept_places const&, std::size_t, view<float>,
                                                        std::span<float>);
template void basic_cpu<double>::masked_max_pool_forward(kept_places const&, std::size_t, view<double>,
                                                         std::span<double>);
template void basic_cpu<float>::masked_max_pool_backward(kept_places const&, std::size_t, view<float>,
                                                         view<float>, view<float>, std::span<float>);
template void basic_cpu<double>::masked_max_pool_backward(kept_places const&, std::size_t, view<double>,
                                                          view<double>, view<double>, std::span<double>);
#endif

}  // namespace edl
