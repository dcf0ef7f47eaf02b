// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/compute/onnx/graph.hpp"

namespace edl::onnx {

/// The batch normalisations of a network that were folded and those that were not, by layer name.
struct folded_layers {
  std::vector<std::string> gone;  ///< folded into the weights of the layer before
  std::vector<std::string> stay;  ///< not folded, each with the reason: "'batch_normalization' (behind …)"
};

/// Folds each batch normalisation into the weights of the convolution or dense layer before it, if no other
/// node reads that layer's outputs. The weights are then called `…/kernel_folded` and `…/bias_folded`.
/// Results stay the same except for rounding. Call it once the graph contains the network with its variables.
folded_layers fold_batch_norms(graph& g);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/batch_norm_folding.ipp"
#endif
