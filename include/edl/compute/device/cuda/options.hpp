// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "edl/compute/device/precision.hpp"

namespace edl {

struct cuda_options {
  int index = 0;  ///< of the GPU, counted round and round those that this process sees
  /// From this one on, the first that no other process of this machine has taken so; where there is none, it
  /// is shared.
  bool alone = false;
  edl::precision precision = precision::float32;
  bool measured =
      true;  ///< kernels of libraries by measurement; otherwise by their rule, the same in every run
  /// The directory of compiled kernels of expressions; empty: they are compiled anew by each process.
  std::string compiled;
  /// Is told, once, of a library's kernel that computes something else than it should, and so is left out.
  /// Null: the log is.
  std::function<void(std::string const&)> warn = nullptr;
};

}  // namespace edl
