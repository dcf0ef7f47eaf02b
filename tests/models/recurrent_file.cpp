// SPDX-License-Identifier: Apache-2.0
// Writes recurrent layers as a file of ONNX, in the forms of PyTorch and Keras: recurrent_file FILE. onnx.sh
// has ONNX Runtime compute it, and the model that `edl import` makes of it.
#include <cmath>
#include <fstream>

#include "onnx_file.hpp"

using namespace onnx_parts;

namespace {

constexpr std::int64_t units = 2, channels = 3;

std::string weights(std::string const& name, numbers const& dims) {
  std::size_t n = 1;
  for (auto const d : dims) n *= std::size_t(d);
  std::vector<float> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(0.8f * std::sin(1.7f * float(i) + float(name.size())));
  return floats(name, dims, all);
}

/// A layer of `from`, whose steps come first; its results are NAME and NAME_h.
std::string layer(std::string const& op, std::string const& name, std::string const& from,
                  std::string const& direction, std::int64_t inputs, std::string const& state = "") {
  std::int64_t const sides = direction == "bidirectional" ? 2 : 1, all = (op == "LSTM" ? 4 : 3) * units;
  std::vector<option> options{{"direction", {}, direction}, {"hidden_size", {units}}};
  if (op == "GRU") options.push_back({"linear_before_reset", {1}});
  std::vector<std::string> operands{from, name + "_w", name + "_rr", name + "_bbb"};
  if (!state.empty()) operands.insert(operands.end(), {"", state, state});
  return weights(operands[1], {sides, all, inputs}) + weights(operands[2], {sides, all, units}) +
         weights(operands[3], {sides, 2 * all}) + node(op, operands, {name, name + "_h"}, options);
}

}  // namespace

int main(int, char** argv) {
  std::string graph = port(11, "x", {5, channels}) + node("Transpose", {"x"}, "t", {{"perm", {1, 0, 2}}});
  graph += ints("0", {0}) + ints("1", {1}) + ints("units", {units}) + ints("0 0 -1", {0, 0, -1}) +
           ints("0 -1", {0, -1});
  // PyTorch makes the initial state of the number of samples.
  graph += node("Shape", {"x"}, "extents") + node("Gather", {"extents", "0"}, "samples") +
           node("Concat", {"1", "samples", "units"}, "shape", {{"axis", {0}}}) +
           node("ConstantOfShape", {"shape"}, "zeros");
  std::vector<std::string> parts;
  for (std::string const op : {"LSTM", "GRU"})
    for (std::string const direction : {"forward", "reverse", "bidirectional"}) {
      std::string const name = op + direction;
      bool const forward = direction == "forward", both = direction == "bidirectional";
      graph += layer(op, name, "t", direction, channels, forward && op == "LSTM" ? "zeros" : "");
      if (forward)
        graph += node("Squeeze", {name, "1"}, name + "_s");
      else
        graph += node("Transpose", {name}, name + "_t", {{"perm", {0, 2, 1, 3}}}) +
                 node("Reshape", {name + "_t", "0 0 -1"}, name + "_s");
      graph += node("Transpose", {name + "_s"}, name + "_y", {{"perm", {1, 0, 2}}}) +
               node("Flatten", {name + "_y"}, name + "_all");
      if (both)
        graph += node("Transpose", {name + "_h"}, name + "_u", {{"perm", {1, 0, 2}}}) +
                 node("Reshape", {name + "_u", "0 -1"}, name + "_last");
      else
        graph += node("Squeeze", {name + "_h", "0"}, name + "_last");
      parts.insert(parts.end(), {name + "_all", name + "_last"});
    }
  // One upon another.
  graph += layer("GRU", "second", "LSTMbidirectional_s", "reverse", 2 * units) +
           node("Squeeze", {"second_h", "0"}, "second_last");
  parts.push_back("second_last");
  graph +=
      node("Concat", parts, "y", {{"axis", {1}}}) + port(12, "y", {2 * (5 * 4 * units + 4 * units) + units});
  std::ofstream(argv[1], std::ios::binary) << model(graph);
}
