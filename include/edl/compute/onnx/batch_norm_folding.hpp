// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/compute/onnx/graph.hpp"

namespace edl::onnx {

/// What became of a network's batch normalisations, by the names of their layers.
struct folded_layers {
  std::vector<std::string> gone;  ///< they are in the weights of the layer before
  std::vector<std::string> stay;  ///< each with the reason: "'batch_normalization' (behind …)"
};

/// Puts each batch normalisation into the weights of the convolution or dense layer whose outputs it alone
/// reads. Those weights are then called `…/kernel_folded` and `…/bias_folded`. Results are the same but for
/// rounding. The others stay as they are. Called once the network, with its
/// variables, is in the graph.
folded_layers fold_batch_norms(graph& g);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/batch_norm_folding.ipp"
#endif
