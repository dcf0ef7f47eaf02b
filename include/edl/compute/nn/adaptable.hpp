// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace edl::nn {

/// A matrix of a layer to whose product a low-rank adapter may be added (`low_rank_layer`): columns [first,
/// first + outputs) of a kernel. A layer lists its own in `adaptables(shape in)`.
struct adaptable {
  std::string_view name{};  ///< among the layer's; empty: it has one
  std::string_view down = "lora_a",
                   up = "lora_b";  ///< the adapter's variables: (inputs, rank), (rank, outputs)
  int product = 0;                 ///< of the layer
  int inputs = 0, first = 0, outputs = 0;
  std::size_t offset = 0;  ///< of the kernel in the layer's variables
  int stride = 0;          ///< columns of the kernel
};

/// Used instead of an adapter.
struct no_addition {
  void operator()(auto const&...) const {}
};

}  // namespace edl::nn
