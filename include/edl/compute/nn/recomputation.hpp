// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>

#include "edl/compute/nn/layer.hpp"
#include "edl/core/random.hpp"

namespace edl::nn {

/// A device for which the compiler checks a layer that can be recomputed. It is never instantiated.
template <class Device>
struct recomputing : Device {};

/// Instantiated if the layer draws random numbers.
template <class Drawn>
struct draws_random_numbers {
  static constexpr bool recompute = sizeof(Drawn) > 0;
  static_assert(!recompute,
                "edl: this layer declares `recomputes`, and draws random numbers, which would differ when it "
                "is computed again");
};

/// The random stream of the checked layer.
struct no_random_stream {
  template <std::integral T>
  constexpr random_stream child(T) const {
    return said<T, random_stream>();
  }
  template <std::integral T>
  constexpr random_stream::block_type block(T) const {
    return said<T, random_stream::block_type>();
  }
  template <std::integral T>
  constexpr std::uint32_t bits(T) const {
    return said<T, std::uint32_t>();
  }
  template <std::integral T>
  constexpr float uniform(T) const {
    return said<T, float>();
  }
  template <std::integral T>
  constexpr std::uint64_t below(T, std::uint64_t) const {
    return said<T, std::uint64_t>();
  }
  template <std::integral T>
  constexpr double normal(T) const {
    return said<T, double>();
  }
  template <std::same_as<random_stream> T>
  constexpr operator T() const {  // NOLINT(google-explicit-constructor)
    return said<T, random_stream>();
  }

 private:
  template <class T, class Result>
  static constexpr Result said() {
    static_assert(sizeof(draws_random_numbers<T>) > 0);
    return Result{};
  }
};

template <class Device>
struct random_numbers<recomputing<Device>> {
  using type = no_random_stream;
};

/// Instantiated for a layer that declares `recomputes`, so that the compiler checks its `forward`.
template <layer L, class Device>
struct recomputation {
  using device = recomputing<Device>;
  static void forward(L const& l, pass<device>& p, forward_args<typename Device::scalar> const& a) {
    l.forward(p, a);
  }
  static constexpr auto read = &forward;
};

}  // namespace edl::nn
