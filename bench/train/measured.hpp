// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bench {

/// A training step of this project: forward, loss, backward and SGD with momentum.
class trainer {
 public:
  virtual ~trainer() = default;
  virtual void step() = 0;
  /// Prints where the time of some steps goes.
  virtual void trace(int steps) = 0;
};

struct workload {
  std::string name;
  std::vector<int> batches;
  double multiplications;  ///< of a step, per sample: what products and convolutions must compute
  std::unique_ptr<trainer> (*make)(int batch, int threads, bool libraries);
};

std::vector<workload> const& workloads();

}  // namespace bench
