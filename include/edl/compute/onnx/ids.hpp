// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/nn/combiner.hpp"
#include "edl/compute/onnx/graph.hpp"

namespace edl::nn {

struct embedding;
struct embedding_bag;
struct factorization_machine;
struct cross;
struct compressed_interaction;

}  // namespace edl::nn

namespace edl::onnx {

// Exports of layers of ids, and of products.
value to_onnx(graph& g, nn::embedding const& l, value const& x);
value to_onnx(graph& g, nn::embedding_bag const& l, value const& x);
value to_onnx(graph& g, nn::factorization_machine const& l, value const& x);
value to_onnx(graph& g, nn::cross const& l, value const& x);
value to_onnx(graph& g, nn::compressed_interaction const& l, value const& x);

/// Combines rows (n, ids, width) by the ids' weights (n, ids) to (n, width).
std::string combine(graph& g, std::string const& rows, std::string const& weights, nn::combiner how);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/ids.ipp"
#endif
