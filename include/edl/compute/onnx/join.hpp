// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "edl/compute/onnx/graph.hpp"

namespace edl::nn {

enum class merge;
struct matrix_product;

}  // namespace edl::nn

namespace edl::onnx {

/// What branches become: their channels one behind the other, their sum or their product.
value join(graph& g, nn::merge how, std::vector<value> branches, shape out);

/// Two results of a graph, as matrices of places by channels.
value join(graph& g, nn::matrix_product const& l, std::vector<value> results, shape out);

/// The names of several outputs, in their order, with how many numbers each has.
using output_names = std::vector<std::pair<std::string, int>>;

/// Ends a graph with its outputs, which lie as `predict` writes them; without names it is one.
void add_outputs(graph& g, value const& y, output_names const& names);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/join.ipp"
#endif
