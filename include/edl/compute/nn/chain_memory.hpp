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
  std::size_t saved = 0, scratch = 0, result = 0, state = 0;
  bool recomputes = false;  ///< its result can be computed again
  bool exact = false;       ///< it must not be rounded: bfloat16 has 256 whole numbers, too few for ids
  bool by_samples = false;  ///< it can be computed again for some samples alone, from the same saved memory
  bool over_x = false;      ///< it may write its input's gradient over its input
  bool splits_backward =
      false;            ///< likewise where the variables' gradients are computed before, by themselves
  bool reads_y = true;  ///< its backward pass reads its result
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
  std::size_t kept = 0, at = 0;          ///< of the saved memory: size and beginning
  std::size_t result = 0, gradient = 0;  ///< of the scratch: sizes; no `result` where it is kept as it is
  bool over_result = false;              ///< the gradient lies where the result was, and takes nothing
  bool over_next = false;                ///< it lies where the next result is kept
  std::size_t reach = 0;                 ///< how far below the end of the scratch they begin
  std::size_t source = 0;  ///< of the scratch: size for a part of what it is computed from again
  bool bfloat16 = false, recomputed = false;  ///< what is done to have it in the backward pass
  bool narrow = false;                        ///< both are bfloat16 wherever they are

  /// Whether the backward pass finds the result as it was computed.
  constexpr bool plain() const { return !bfloat16 && !recomputed; }

  template <class T>
  std::span<T> result_in(std::span<T> kept_memory, std::span<T> arena) const {
    return result == 0 ? kept_memory : arena.subspan(arena.size() - reach, result);
  }
  /// `own` is the result's memory, and `next` what is kept of the next one.
  template <class T>
  std::span<T> gradient_in(std::span<T> arena, std::span<T> own, std::span<T> next) const {
    if (over_result) return own;
    return over_next ? next : arena.subspan(arena.size() - reach + result, gradient);
  }
};

/// Where a chain's results and gradients lie. What is kept for the backward pass grows step by step from the
/// start of the saved memory. It is used up step by step from its end. At the end of the scratch lie, at any
/// time, one result and one gradient before a step and one of each behind it. Those of even places lie at the
/// very end, those of odd ones below their neighbours. So the scratch may begin wherever the saved memory
/// ends at that time, and both take little more than what is kept.
///
/// Of a group of steps that is computed again (`pass_size::again`), the states as they were and the last
/// result are kept. All else is written over by what comes behind. The backward pass fills it once more, and
/// so the group's results lie beside the last one's gradient, which is there by then. Nobody reads the last
/// result any more when the last step's backward pass begins, unless that step does.
///
/// With `storage::compact` a gradient lies over its result where that is read for the last time, element by
/// element, as the gradient is written; and where `pass_size::tight`, if it is not read any more then.
template <std::size_t Length>
struct chain_memory {
  std::array<between_steps, Length + 1>
      between{};                            ///< before step i; the first and the last are the caller's
  std::array<std::size_t, Length> live{};   ///< saved memory that is in use when step i computes
  std::array<std::size_t, Length> takes{};  ///< the same with the scratch that it needs
  std::array<std::size_t, Length> saved_at{}, state_at{};  ///< where a step's own lie in the saved memory
  std::array<std::size_t, Length> again{};  ///< where the group of step i ends; 0: it is not computed again
  std::size_t saved = 0, scratch = 0, workspace = 0;

  constexpr chain_memory(std::array<step_memory, Length> const& of,
                         std::array<bool, Length + 1> const& narrow_at, pass_size batch) {
    bool const compact = batch.keep == storage::compact, halved = compact || batch.keep == storage::bfloat16;
    for (std::size_t i = 0; i + 1 < Length; ++i) {
      step_memory const& s = of[i];
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
    }
    if (batch.again && batch.inner == 0)
      for (std::size_t first = 0; first < Length; ++first)
        for (std::size_t i = first; is_group(first, batch.again[first]) && i < batch.again[first]; ++i)
          again[i] = batch.again[first];
    for (std::size_t i = 1; i < Length; ++i) {
      between_steps& b = between[i];
      // A group's last result is written once more when its gradient is there.
      bool const ends = again[i - 1] == i, last = again[i] == i + 1 && again[i - 1] == i + 1;
      b.over_result = batch.keep == storage::compact &&
                      (of[i].over_x || (batch.tight && of[i].splits_backward)) && !of[i - 1].reads_y && !ends;
      b.over_next =
          !b.over_result && last && !of[i].reads_y && i + 1 < Length && b.gradient <= between[i + 1].kept;
      if (b.over_result || b.over_next) b.gradient = 0;
    }
    place_saved(of);
    place_between();
    workspace = saved;
    for (std::size_t i = 0; i < Length; ++i) {
      std::size_t const need = own(of, i) + top(i);
      scratch = std::max(scratch, need);
      takes[i] = live[i] + need;
      workspace = std::max(workspace, takes[i]);
    }
  }

  /// The most that steps [first, end) take if no other step has results or gradients in the scratch.
  constexpr std::size_t takes_alone(std::array<step_memory, Length> const& of, std::size_t first,
                                    std::size_t end) const {
    chain_memory alone = *this;
    for (std::size_t i = 1; i < Length; ++i)
      if (i < first || i > end) alone.between[i].result = alone.between[i].gradient = 0;
    alone.place_between();
    std::size_t most = 0;
    for (std::size_t i = first; i < end; ++i) most = std::max(most, live[i] + own(of, i) + alone.top(i));
    return most;
  }

  /// Whether a group may begin with step i and end before step `end`: what goes in and what comes out is
  /// found as it was.
  constexpr bool is_group(std::size_t i, std::size_t end) const {
    return i < end && end < Length && between[i].plain() && between[end].plain();
  }
  /// Whether a group does.
  constexpr bool begins(std::size_t i) const { return again[i] != 0 && (i == 0 || again[i - 1] != again[i]); }

  /// The sides of step i that are narrow, where these are those of the whole chain.
  constexpr bfloat16_io narrow(std::size_t i, bfloat16_io all) const {
    return {i == 0 ? all.in : between[i].narrow, i + 1 == Length ? all.out : between[i + 1].narrow};
  }

  /// What the results and gradients around step i take of the scratch's end, and the gradient that is there
  /// while the step is computed again.
  constexpr std::size_t top(std::size_t i) const {
    std::size_t const around = std::max(between[i].reach, between[i + 1].reach);
    return again[i] == 0 ? around : std::max(around, between[again[i]].reach);
  }
  /// What is left of the scratch for step i itself.
  template <class T>
  std::span<T> below(std::size_t i, std::span<T> arena) const {
    return arena.first(arena.size() - top(i));
  }

 private:
  constexpr std::size_t size(std::size_t i) const { return between[i].result + between[i].gradient; }
  /// What step i needs of the scratch itself.
  constexpr std::size_t own(std::array<step_memory, Length> const& of, std::size_t i) const {
    return std::max(rounded(of[i].scratch), between[i].source);
  }

  /// Gives every place the least distance to the end at which it meets none that is in use with it: its
  /// neighbours, and of a group that ends there, all within.
  constexpr void place_between() {
    for (between_steps& b : between) b.reach = 0;
    for (std::size_t first = 2; first > 0; --first)  // the even ones, and then the others between them
      for (std::size_t i = first; i < Length; i += 2) {
        std::size_t at = 0;
        bool moved = size(i) > 0;
        auto const avoid = [&](std::size_t j) {
          std::size_t const end = between[j].reach;
          if (at >= end || end - size(j) >= at + size(i)) return;
          at = end;
          moved = true;
        };
        while (moved) {
          moved = false;
          avoid(i - 1);
          if (i + 1 < Length) avoid(i + 1);
          if (again[i] != 0 && again[i] == again[i - 1]) avoid(again[i]);
          for (std::size_t j = i - 1; j > 0 && again[j] == i && again[j - 1] == i; --j) avoid(j);
        }
        between[i].reach = at + size(i);
      }
  }

  constexpr void place_saved(std::array<step_memory, Length> const& of) {
    std::size_t here = 0, behind = 0;
    for (std::size_t i = 0; i < Length; ++i) {
      if (begins(i)) {
        for (std::size_t k = i; k < again[i]; ++k) {
          state_at[k] = here;
          here += rounded(of[k].state);
        }
        between[again[i]].at = here;
        behind = here += between[again[i]].kept;
      }
      saved_at[i] = here;
      here += rounded(of[i].saved);
      if (i + 1 < Length && again[i] != i + 1) {
        between[i + 1].at = here;
        here += between[i + 1].kept;
      }
      live[i] = here;
      saved = std::max(saved, here);
      if (again[i] == i + 1) here = behind;
    }
  }
};

}  // namespace edl::nn
