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

/// Joins branches: concatenates their channels, or computes their sum or product.
value join(graph& g, nn::merge how, std::vector<value> branches, shape out);

/// Joins two results, as matrices of places by channels.
value join(graph& g, nn::matrix_product const& l, std::vector<value> results, shape out);

/// The names of several outputs in order, with the number of elements of each.
using output_names = std::vector<std::pair<std::string, int>>;

/// Adds the outputs of a graph, in the layout in which `predict` writes them; without names, a single one.
void add_outputs(graph& g, value const& y, output_names const& names);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/join.ipp"
#endif
