// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "edl/core/random.hpp"

namespace edl {

/// The valid places of each sample of a batch; all others are padding. The lists lie in the device's memory.
struct kept_places {
  int places = 0;                           ///< of a sample; 0: all are valid, and there are no lists
  std::span<std::int32_t const> counts{};   ///< (batch): valid places
  std::span<std::int32_t const> order{};    ///< (batch, places): a row begins with the valid ones, ascending
  std::span<std::int32_t const> longest{};  ///< (batch): the samples, those of more places first

  constexpr bool all() const { return places == 0; }

  /// The valid places of a sample.
  constexpr std::span<std::int32_t const> of(std::size_t sample) const {
    return order.subspan(sample * std::size_t(places), std::size_t(counts[sample]));
  }

  /// Calls visit(place) for each padding place of a sample.
  template <class Visit>
  constexpr void each_padded(std::size_t sample, Visit&& visit) const {
    auto const kept = of(sample);
    std::size_t next = 0;
    for (int place = 0; place < places; ++place)
      if (next < kept.size() && kept[next] == place)
        ++next;
      else
        visit(std::size_t(place));
  }
};

/// How many numbers the lists take.
constexpr std::size_t numbers_of_places(std::size_t batch, std::size_t places) {
  return batch * (places + 2);
}

/// The lists in such memory.
constexpr kept_places places_in(std::span<std::int32_t const> memory, std::size_t batch, int places) {
  return {places, memory.first(batch), memory.subspan(2 * batch), memory.subspan(batch, batch)};
}

/// Builds the lists: counts(sample, place) says whether a place is valid.
template <class Counts>
constexpr kept_places find_places(std::span<std::int32_t> memory, std::size_t batch, int places,
                                  Counts&& counts) {
  auto const longest = memory.subspan(batch, batch), order = memory.subspan(2 * batch);
  for (std::size_t sample = 0; sample < batch; ++sample) {
    std::size_t const first = sample * std::size_t(places);
    std::size_t n = 0;
    for (int place = 0; place < places; ++place)
      if (counts(sample, std::size_t(place))) order[first + n++] = place;
    memory[sample] = std::int32_t(n);
    longest[sample] = std::int32_t(sample);
  }
  std::ranges::sort(longest, [&](std::int32_t a, std::int32_t b) {  // a stable sort would allocate
    auto const m = memory[std::size_t(a)], n = memory[std::size_t(b)];
    return m != n ? m > n : a < b;
  });
  return places_in(memory, batch, places);
}

/// Which weights of attention are zeros: those of padding places, and each other one with the probability
/// `dropout`. The remaining ones are divided by 1 − dropout. The choice is a function of the stream, the
/// sample, the head, and the places counted without padding.
struct attention_mask {
  kept_places places{};
  float dropout = 0;
  random_stream random{};

  constexpr bool none() const { return places.all() && dropout == 0; }
};

}  // namespace edl
