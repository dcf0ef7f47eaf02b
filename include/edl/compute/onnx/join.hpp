// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "edl/compute/onnx/graph.hpp"

namespace edl::nn {

enum class merge;
struct matrix_product;
struct gathered;
struct row_ids;

}  // namespace edl::nn

namespace edl::onnx {

/// Joins branches: concatenates their channels, or computes their sum or product.
value join(graph& g, nn::merge how, std::vector<value> branches, shape out);

/// Joins two results, as matrices of places by channels.
value join(graph& g, nn::matrix_product const& l, std::vector<value> results, shape out);

/// Takes places of the first result by the ids of the second.
value join(graph& g, nn::gathered const& l, std::vector<value> results, shape out);
value to_onnx(graph& g, nn::row_ids const& l, value const& x);

/// The names of several outputs in order, with the number of elements of each.
using output_names = std::vector<std::pair<std::string, int>>;

/// Adds the outputs of a graph, in the layout in which `predict` writes them; without names, a single one.
void add_outputs(graph& g, value const& y, output_names const& names);

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/join.ipp"
#endif
