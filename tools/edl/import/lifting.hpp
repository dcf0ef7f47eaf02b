// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/shape.hpp"
#include "import/network_file.hpp"

namespace edl::tool::lifting {

/// A variable of a layer, as edl's layer has it.
struct variable {
  std::string name;
  onnx_file::numbers dims;
  std::vector<float> values;
};

/// An input of the network to be written, a layer that is applied to a result, or results that are joined.
struct result {
  enum class kind { input, layer, joint };

  kind what = kind::layer;
  std::string type;                  ///< "nn::dense", "nn::concat", "+"; of an input its name
  std::vector<std::string> options;  ///< ".units = 10"; of an input its kind: "nn::features{.count = 3}"
  std::vector<int> from;
  shape out;
  std::string name = {};  ///< in names of variables
  std::vector<variable> variables = {};
};

struct network {
  std::vector<result> results;  ///< operands first
  int output = -1;
  std::vector<std::pair<std::string, int>> heads;  ///< names and sizes, if there are several
  std::vector<std::string> formulas;               ///< structs of layers
  std::vector<std::string> problems;               ///< what has no layer, with its node
  bool ends_in_softmax = false;
};

/// The layers of edl that compute what a graph of ONNX computes. A node without such a layer is named among
/// the problems, and a layer of a name that is not there takes its place. Throws edl::error for inputs whose
/// extents are not known; `extents` gives those that have names.
network lift(onnx_file::network const& graph, std::map<std::string, std::int64_t> const& extents);

}  // namespace edl::tool::lifting
