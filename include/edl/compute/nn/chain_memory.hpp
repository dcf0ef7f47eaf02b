// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "edl/compute/device/geometry.hpp"
#include "edl/compute/nn/carve.hpp"
#include "edl/compute/nn/storage.hpp"

namespace edl::nn {

/// What a step of a chain asks for, in scalars.
struct step_memory {
  std::size_t saved = 0, scratch = 0, result = 0;
  bool recomputes = false;  ///< its result can be computed again
  bool exact = false;       ///< it must not be rounded: bfloat16 has 256 whole numbers, too few for ids
  bool by_samples = false;  ///< it can be computed again for some samples alone, from the same saved memory
};

/// Which places between steps are narrow, where `able` says which sides of a step can be. Before the first
/// and behind the last step it is as the batch says.
template <std::size_t Length>
constexpr std::array<bool, Length + 1> narrow_places(std::array<bfloat16_io, Length> const& able,
                                                     pass_size batch) {
  std::array<bool, Length + 1> all{batch.sides.in};
  for (std::size_t i = 1; i < Length; ++i) all[i] = batch.narrow && able[i - 1].out && able[i].in;
  all[Length] = batch.sides.out;
  return all;
}

/// Samples whose result is computed again at a time, where what it is made of is kept as bfloat16.
constexpr int recomputed_samples(int batch) { return (batch + 7) / 8; }

/// A result between two steps, and its gradient: where they are.
struct between_steps {
  std::size_t kept = 0;                  ///< of the saved memory
  std::size_t result = 0, gradient = 0;  ///< of the scratch: sizes; no `result` where it is kept as it is
  std::size_t reach = 0;                 ///< how far below the end of the scratch they begin
  std::size_t source = 0;  ///< of the scratch: size for a part of what it is computed from again
  bool bfloat16 = false, recomputed = false;  ///< what is done to have it in the backward pass
  bool narrow = false;                        ///< both are bfloat16 wherever they are

  template <class T>
  std::span<T> result_in(std::span<T> kept_memory, std::span<T> arena) const {
    return result == 0 ? kept_memory : arena.subspan(arena.size() - reach, result);
  }
  template <class T>
  std::span<T> gradient_in(std::span<T> arena) const {
    return arena.subspan(arena.size() - reach + result, gradient);
  }
};

/// Where a chain's results and gradients lie. What is kept for the backward pass grows step by step from the
/// start of the saved memory. It is used up step by step from its end. At the end of the scratch lie, at any
/// time, one result and one gradient before a step and one of each behind it. Those of even places lie at the
/// very end, those of odd ones below their neighbours. So the scratch may begin wherever the saved memory
/// ends at that time, and both take little more than what is kept.
template <std::size_t Length>
struct chain_memory {
  std::array<between_steps, Length + 1>
      between{};                           ///< before step i; the first and the last are the caller's
  std::array<std::size_t, Length> live{};  ///< saved memory that is in use when step i computes
  std::size_t saved = 0, scratch = 0, workspace = 0;

  constexpr chain_memory(std::array<step_memory, Length> const& of,
                         std::array<bool, Length + 1> const& narrow_at, pass_size batch) {
    bool const compact = batch.keep == storage::compact, halved = compact || batch.keep == storage::bfloat16;
    for (std::size_t i = 0; i < Length; ++i) {
      step_memory const& s = of[i];
      saved += rounded(s.saved);
      if (i + 1 < Length) {
        between_steps& b = between[i + 1];
        b.narrow = narrow_at[i + 1];
        b.gradient = rounded(scalars_of(s.result, b.narrow));
        b.recomputed = s.recomputes && !between[i].recomputed &&
                       (batch.keep == storage::recomputed || (compact && s.by_samples));
        b.bfloat16 = halved && !b.recomputed && !s.exact && !b.narrow;
        if (b.recomputed && between[i].bfloat16)
          b.source = rounded(of[i - 1].result / std::size_t(std::max(1, batch.samples)) *
                             std::size_t(recomputed_samples(batch.samples)));
        b.result = b.bfloat16 || b.recomputed ? b.gradient : 0;
        b.kept = b.recomputed ? 0 : rounded(scalars_of(s.result, b.bfloat16 || b.narrow));
        saved += b.kept;
      }
      live[i] = saved;
    }
    for (std::size_t i = 2; i < Length; i += 2) between[i].reach = between[i].result + between[i].gradient;
    for (std::size_t i = 1; i < Length; i += 2)
      between[i].reach =
          between[i].result + between[i].gradient + std::max(between[i - 1].reach, between[i + 1].reach);
    workspace = saved;
    for (std::size_t i = 0; i < Length; ++i) {
      std::size_t const need = std::max(rounded(of[i].scratch), between[i].source) + top(i);
      scratch = std::max(scratch, need);
      workspace = std::max(workspace, live[i] + need);
    }
  }

  /// The sides of step i that are narrow, where these are those of the whole chain.
  constexpr bfloat16_io narrow(std::size_t i, bfloat16_io all) const {
    return {i == 0 ? all.in : between[i].narrow, i + 1 == Length ? all.out : between[i + 1].narrow};
  }

  /// What the results and gradients around step i take of the scratch's end.
  constexpr std::size_t top(std::size_t i) const { return std::max(between[i].reach, between[i + 1].reach); }
  /// What is left of the scratch for step i itself.
  template <class T>
  std::span<T> below(std::size_t i, std::span<T> arena) const {
    return arena.first(arena.size() - top(i));
  }
};

}  // namespace edl::nn
