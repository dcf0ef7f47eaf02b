// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/onnx/graph.hpp"

namespace edl::nn {

struct conv2d;
struct conv2d_transpose;
struct max_pool;
struct average_pool;
struct global_average_pool;
struct global_max_pool;
struct upsample;
struct batch_norm;
struct group_norm;

}  // namespace edl::nn

namespace edl::onnx {

// Exports of layers of pictures; channels come first where ONNX requires it.
value to_onnx(graph& g, nn::conv2d const& l, value const& x);
value to_onnx(graph& g, nn::conv2d_transpose const& l, value const& x);
value to_onnx(graph& g, nn::max_pool const& l, value const& x);
value to_onnx(graph& g, nn::average_pool const& l, value const& x);
value to_onnx(graph& g, nn::global_average_pool const& l, value const& x);
value to_onnx(graph& g, nn::global_max_pool const& l, value const& x);
value to_onnx(graph& g, nn::upsample const& l, value const& x);
value to_onnx(graph& g, nn::batch_norm const& l, value const& x);
value to_onnx(graph& g, nn::group_norm const& l, value const& x);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/pictures.ipp"
#endif
