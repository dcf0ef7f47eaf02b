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

// What layers of places become. Padding, of any place, is passed over as the network does it.
value to_onnx(graph& g, nn::attention const& l, value const& x);
value join(graph& g, nn::attention_of_two const& l, std::vector<value> results, shape out);
value to_onnx(graph& g, nn::lstm const& l, value const& x);
value to_onnx(graph& g, nn::gru const& l, value const& x);
value to_onnx(graph& g, nn::positions const& l, value const& x);
value to_onnx(graph& g, nn::sinusoidal_positions const& l, value const& x);

/// Which places count, of the ids or the length that the mask looks at: in `x`, or in a named input.
graph::mask mask_of(graph& g, nn::padding_mask const& l, value const& x);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/sequences.ipp"
#endif
