// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <edl/compute/device/cpu/options.hpp>
#include <edl/compute/nn/storage.hpp>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// A training step of this project: forward, loss, backward and SGD with momentum. Or the forward pass of an
/// evaluation.
class trainer {
 public:
  virtual ~trainer() = default;
  virtual void step() = 0;
  /// Prints where the time of some steps goes.
  virtual void trace(int steps) = 0;
};

/// How this project computes.
struct contest {
  edl::cpu_options device{};
  edl::nn::storage keep = edl::nn::storage::recomputed;
  std::size_t memory_budget = 0;  ///< bytes that the network may take; 0: no bound
  bool forward = false;           ///< the forward pass of an evaluation, and nothing else
  bool function = false;          ///< the network as a function
};

struct workload {
  std::string name;
  std::vector<int> batches;
  double multiplications;  ///< of a step, per sample: what products and convolutions must compute
  double forward;          ///< and of an evaluation
  std::unique_ptr<trainer> (*make)(int batch, contest const& how);
  void (*export_onnx)(std::string const& file) = nullptr;  ///< null: its forward pass is not measured
};

std::vector<workload> const& workloads();

}  // namespace bench
