// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/onnx/graph.hpp"

namespace edl::nn {

struct dense;
struct flatten;
struct identity;
struct dropout;
struct relu;
struct leaky_relu;
struct sigmoid;
struct tanh;
struct gelu;
struct silu;
struct elu;
struct softplus;
struct scale;
struct slice;
struct pad;
struct reshape;
struct transpose;
struct softmax;
struct log_softmax;
struct layer_norm;

}  // namespace edl::nn

namespace edl::onnx {

// Exports of layers of rows, and of layers that treat each place separately.
value to_onnx(graph& g, nn::dense const& l, value const& x);
value to_onnx(graph& g, nn::flatten const& l, value const& x);
value to_onnx(graph& g, nn::identity const& l, value const& x);
value to_onnx(graph& g, nn::dropout const& l, value const& x);
value to_onnx(graph& g, nn::relu const& l, value const& x);
value to_onnx(graph& g, nn::leaky_relu const& l, value const& x);
value to_onnx(graph& g, nn::sigmoid const& l, value const& x);
value to_onnx(graph& g, nn::tanh const& l, value const& x);
value to_onnx(graph& g, nn::gelu const& l, value const& x);
value to_onnx(graph& g, nn::silu const& l, value const& x);
value to_onnx(graph& g, nn::elu const& l, value const& x);
value to_onnx(graph& g, nn::softplus const& l, value const& x);
value to_onnx(graph& g, nn::scale const& l, value const& x);
value to_onnx(graph& g, nn::slice const& l, value const& x);
value to_onnx(graph& g, nn::pad const& l, value const& x);
value to_onnx(graph& g, nn::reshape const& l, value const& x);
value to_onnx(graph& g, nn::transpose const& l, value const& x);
value to_onnx(graph& g, nn::softmax const& l, value const& x);
value to_onnx(graph& g, nn::log_softmax const& l, value const& x);
value to_onnx(graph& g, nn::layer_norm const& l, value const& x);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/elements.ipp"
#endif
