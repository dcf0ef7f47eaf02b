// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "edl/compute/device/cpu/options.hpp"
#include "edl/compute/device/cuda/options.hpp"
#include "edl/compute/nn/storage.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/core/span.hpp"

namespace edl::worker {

/// The device. `any`: a GPU if there is one.
enum class device_kind { any, cpu, cuda };

constexpr std::array<std::string_view, 3> names(device_kind) { return {"auto", "cpu", "cuda"}; }

/// Whether samples that were fed once are kept in the device's memory.
enum class keep_samples { automatic, on, off };

constexpr std::array<std::string_view, 3> names(keep_samples) { return {"auto", "on", "off"}; }

struct trainer_options {
  int max_batch = 1;       ///< largest number of records in a minibatch
  std::uint64_t seed = 1;  ///< of dropout
  device_kind on = device_kind::cpu;
  cpu_options device{};
  cuda_options cuda{};
  nn::storage keep = nn::storage::recomputed;  ///< how results between layers are stored
  std::size_t memory_budget = 0;  ///< bytes that the network may take (`model_options`); 0: no limit
  keep_samples samples = keep_samples::automatic;  ///< on a GPU
  std::vector<rated_range> rated{};                ///< parameters, from `rates_of_parts`
  /// Variables to predict with, which must outlive the trainer: it has none of its own, and can only predict.
  std::span<float> predicts_with{};
  view<float> frozen{};  ///< values of frozen variables, which must outlive the trainer
  bool profile = false;  ///< time the passes, layer by layer
  /// `evaluate` measures twice: in the device's precision, and also, on a processor, in float32.
  bool compares = false;
};

}  // namespace edl::worker
