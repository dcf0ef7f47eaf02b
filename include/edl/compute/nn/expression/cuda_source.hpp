// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>

#include "edl/compute/device/backend.hpp"
#include "edl/compute/nn/expression/run.hpp"
#include "edl/compute/nn/expression/schedule.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn::expression {

/// How a GPU divides a program's work. A team of `lanes` threads takes a row, and a block has `teams` of
/// them. A block takes a sample at a time. If samples do not matter, each team takes a row, and if they have
/// one place, a sample.
struct team_layout {
  std::size_t channels, places;  ///< of a sample
  int lanes, teams;
  std::size_t length;  ///< elements of a row in the loops over samples
  bool whole_samples;  ///< each team takes one
  /// Offsets of slots: of a shared value in the scratch memory, of a total among all totals, and of an own
  /// value in the memory of its block. −1: it has no memory there.
  std::array<std::ptrdiff_t, program::most_slots> at;
  std::size_t shared = 0, totals = 0, own = 0;

  team_layout(program const& p, shape in);
};

/// The source of a program's kernels for inputs of this shape, in CUDA C++; see `generated`. It needs no
/// header. With the macro HALF activations are bfloat16. A pure function: the same text in every process.
std::string cuda_source(program const& p, shape in);

/// Computes a program on an accelerator. Returns false if `on` is none.
bool run_on_accelerator(backend& on, program const& p, call<float> const& a);

/// Copies float32 numbers within the memory of an accelerator. Returns false if `on` is none.
bool move_on_accelerator(backend& on, view<float> from, std::span<float> to);

/// Copies numbers, which are never narrow, within the memory of a device.
template <class T>
void move(basic_backend<T>& on, view<T> from, std::span<T> to) {
  if constexpr (std::same_as<T, float>)
    if (move_on_accelerator(on, from, to)) return;
  on.copy(from, to);
}

/// Computes a program on a processor or an accelerator.
template <program const& P, class T>
void run(basic_backend<T>& on, call<T> const& a) {
  if constexpr (std::same_as<T, float>)
    if (run_on_accelerator(on, P, a)) return;
  auto& cpu = dynamic_cast<basic_cpu<T>&>(on);
  if constexpr (draws(P))
    if (a.draws) draw_into_kept<T>(cpu, P, a);
  run_on<P, T>(cpu, a);
}

}  // namespace edl::nn::expression

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/expression/cuda_source.ipp"
#endif
