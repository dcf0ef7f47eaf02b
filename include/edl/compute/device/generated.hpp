// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "edl/core/shape.hpp"

namespace edl {

/// The argument of each kernel of a `generated` program: addresses in the accelerator's memory. The kernels'
/// source repeats its layout, and needs only as many numbers as it reads.
struct generated_call {
  static constexpr std::size_t most_inputs = 8, most_numbers = 192;

  void const* x[most_inputs] = {};  ///< activations, of each input; so is `dy`
  void* dx[most_inputs] = {};       ///< activations; null: it is not wanted
  void const* dy = nullptr;
  float const *variables = nullptr, *labels = nullptr;
  void* y = nullptr;  ///< activations; of a loss, one float32
  float *gradients = nullptr, *kept = nullptr;
  std::uint64_t batch = 0, key = 0, step = 0;  ///< `key` and `step`: of the random stream
  std::uint64_t training = 0;
  float* scratch = nullptr;                 // the accelerator sets these three
  std::uint64_t const* step_now = nullptr;  // null: `step`
  std::uint64_t blocks = 0;                 // of the kernel `rows`
  float numbers[most_numbers] = {};
};

/// Kernels in CUDA C++, which an accelerator compiles when it first runs them. They run in this order:
/// `draw` and `rows` with many blocks, `before` and `after` with one block, `join` with a thread for each
/// total. Each has `threads` threads in a block, and takes a `generated_call`.
struct generated {
  static constexpr unsigned threads = 256;

  void const* program = nullptr;  ///< together with the shape, it identifies the source
  shape in;
  std::string_view name;                                ///< of the layer or loss, for errors
  std::string (*source)(void const*, shape) = nullptr;  ///< a pure function of both
  bool draws = false, before = false, after = false;
  std::size_t rows = 0;         ///< the most blocks that have work; 0: there is no kernel `rows`
  std::size_t totals = 0;       ///< numbers that all blocks sum; 0: there is no kernel `join`
  std::size_t scratch = 0;      ///< floats, and
  std::size_t of_block = 0;     ///< for each block
  std::size_t activations = 0;  ///< read and written, for measurements
};

}  // namespace edl
