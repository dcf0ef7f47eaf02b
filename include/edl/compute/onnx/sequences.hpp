// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/onnx/graph.hpp"

namespace edl::nn {

struct attention;
struct attention_of_two;
struct lstm;
struct gru;
struct positions;
struct sinusoidal_positions;
struct padding_mask;

}  // namespace edl::nn

namespace edl::onnx {

// Exports of layers of places. They skip padding, at any place, as the network does.
value to_onnx(graph& g, nn::attention const& l, value const& x);
value join(graph& g, nn::attention_of_two const& l, std::vector<value> results, shape out);
value to_onnx(graph& g, nn::lstm const& l, value const& x);
value to_onnx(graph& g, nn::gru const& l, value const& x);
value to_onnx(graph& g, nn::positions const& l, value const& x);
value to_onnx(graph& g, nn::sinusoidal_positions const& l, value const& x);

/// The valid places by the ids or the length that the mask reads: from `x`, or from a named input.
graph::mask mask_of(graph& g, nn::padding_mask const& l, value const& x);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/sequences.ipp"
#endif
