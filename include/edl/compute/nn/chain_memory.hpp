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

/// The memory of a step of a chain, in scalars.
struct step_memory {
  std::size_t saved = 0, scratch = 0, result = 0, state = 0;
  bool recomputes = false;       ///< its result can be recomputed
  bool exact = false;            ///< it must not be rounded: bfloat16 has 256 whole numbers, too few for ids
  bool by_samples = false;       ///< it can be recomputed for some samples only, from the same saved memory
  bool over_x = false;           ///< it may write its input's gradient over its input
  bool splits_backward = false;  ///< likewise if the variables' gradients are computed before, separately
  bool reads_y = true;           ///< its backward pass reads its result
};

/// Which results between steps are narrow; `able`: the sides of each step that can be. Before the first and
/// after the last step the batch determines it.
template <std::size_t Length>
constexpr std::array<bool, Length + 1> narrow_places(std::array<bfloat16_io, Length> const& able,
                                                     pass_size batch) {
  std::array<bool, Length + 1> all{batch.sides.in};
  for (std::size_t i = 1; i < Length; ++i) all[i] = batch.narrow && able[i - 1].out && able[i].in;
  all[Length] = batch.sides.out;
  return all;
}

/// Number of samples whose result is recomputed at a time from an input stored as bfloat16.
constexpr int recomputed_samples(int batch) { return (batch + 7) / 8; }

/// The places of a result between two steps and of its gradient.
struct between_steps {
  std::size_t kept = 0, at = 0;          ///< in the saved memory: size and offset
  std::size_t result = 0, gradient = 0;  ///< in the scratch: sizes; no `result` if it is stored as it is
  bool over_result = false;              ///< the gradient overwrites the result, and takes no memory
  bool over_next = false;                ///< it is stored over the next result
  std::size_t reach = 0;                 ///< their distance below the end of the scratch
  std::size_t source = 0;  ///< in the scratch: size for a part of the input from which it is recomputed
  bool bfloat16 = false, recomputed = false;  ///< how the backward pass gets it
  bool narrow = false;                        ///< both are bfloat16 everywhere

  /// Whether the backward pass finds the result as it was computed.
  constexpr bool plain() const { return !bfloat16 && !recomputed; }

  template <class T>
  std::span<T> result_in(std::span<T> kept_memory, std::span<T> arena) const {
    return result == 0 ? kept_memory : arena.subspan(arena.size() - reach, result);
  }
  /// `own` is the result's memory, and `next` the stored part of the next one.
  template <class T>
  std::span<T> gradient_in(std::span<T> arena, std::span<T> own, std::span<T> next) const {
    if (over_result) return own;
    return over_next ? next : arena.subspan(arena.size() - reach + result, gradient);
  }
};

/// The places of a chain's results and gradients. The values stored for the backward pass grow step by step
/// from the start of the saved memory, and are consumed step by step from its end. The end of the scratch
/// contains, at any time, one result and one gradient before a step and one of each after it. Those at even
/// positions are at the very end, those at odd ones below their neighbours. So the scratch may begin wherever
/// the saved memory ends at that time, and both take little more than the stored values.
///
/// Of a group of steps that is recomputed (`pass_size::again`), only the original states and the last result
/// are stored. Later steps overwrite the rest. The backward pass fills it again, so the group's results are
/// beside the last one's gradient, which exists by then. When the last step's backward pass begins, only that
/// step may still read the last result.
///
/// With `storage::compact` a gradient overwrites its result if writing the gradient reads the result for the
/// last time, element by element; with `pass_size::tight`, also if the result is no longer read.
template <std::size_t Length>
struct chain_memory {
  std::array<between_steps, Length + 1> between{};  ///< before step i; the caller owns the first and the last
  std::array<std::size_t, Length> live{};           ///< saved memory that is in use when step i computes
  std::array<std::size_t, Length> takes{};          ///< the same with the scratch that it needs
  std::array<std::size_t, Length> saved_at{}, state_at{};  ///< of a step's own values in the saved memory
  std::array<std::size_t, Length> again{};  ///< the end of step i's group; 0: it is not recomputed
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
      // A group's last result is rewritten when its gradient exists.
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

  /// The largest use of steps [first, end) if no other step has results or gradients in the scratch.
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

  /// Whether a group may begin with step i and end before step `end`: its input and its result are still
  /// stored.
  constexpr bool is_group(std::size_t i, std::size_t end) const {
    return i < end && end < Length && between[i].plain() && between[end].plain();
  }
  /// Whether a group begins with step i.
  constexpr bool begins(std::size_t i) const { return again[i] != 0 && (i == 0 || again[i - 1] != again[i]); }

  /// The narrow sides of step i, given those of the whole chain.
  constexpr bfloat16_io narrow(std::size_t i, bfloat16_io all) const {
    return {i == 0 ? all.in : between[i].narrow, i + 1 == Length ? all.out : between[i + 1].narrow};
  }

  /// The size at the scratch's end of the results and gradients around step i, and of the gradient that
  /// exists while the step is recomputed.
  constexpr std::size_t top(std::size_t i) const {
    std::size_t const around = std::max(between[i].reach, between[i + 1].reach);
    return again[i] == 0 ? around : std::max(around, between[again[i]].reach);
  }
  /// The rest of the scratch, for step i itself.
  template <class T>
  std::span<T> below(std::size_t i, std::span<T> arena) const {
    return arena.first(arena.size() - top(i));
  }

 private:
  constexpr std::size_t size(std::size_t i) const { return between[i].result + between[i].gradient; }
  /// The scratch that step i itself needs.
  constexpr std::size_t own(std::array<step_memory, Length> const& of, std::size_t i) const {
    return std::max(rounded(of[i].scratch), between[i].source);
  }

  /// Gives every result the least distance to the end without overlapping one in use at the same time: its
  /// neighbours, and all results within a group that ends there.
  constexpr void place_between() {
    for (between_steps& b : between) b.reach = 0;
    for (std::size_t first = 2; first > 0; --first)  // the even ones, then the others between them
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
