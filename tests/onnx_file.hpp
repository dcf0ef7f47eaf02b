// SPDX-License-Identifier: Apache-2.0
// Parts of files of ONNX, as another program could have written them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/onnx/message.hpp"

namespace onnx_parts {

using edl::onnx::message;
using numbers = std::vector<std::int64_t>;

struct option {
  std::string name;
  numbers ints;
  std::string text = {};
};

inline std::string node(std::string const& op, std::vector<std::string> const& inputs,
                        std::vector<std::string> const& outputs, std::vector<option> const& options = {},
                        std::string const& domain = "") {
  message m;
  for (auto const& i : inputs) m.text(1, i);
  for (auto const& o : outputs) m.text(2, o);
  m.text(3, "node_" + outputs[0]).text(4, op);
  for (auto const& o : options) {
    message a;
    a.text(1, o.name);
    if (!o.text.empty())
      a.text(4, o.text).number(20, 3);
    else if (o.ints.size() == 1)
      a.number(3, std::uint64_t(o.ints[0])).number(20, 2);
    else
      a.packed(8, o.ints).number(20, 7);
    m.text(5, a.bytes());
  }
  if (!domain.empty()) m.text(7, domain);
  return message().text(1, m.bytes()).bytes();
}
inline std::string node(std::string const& op, std::vector<std::string> const& inputs,
                        std::string const& output, std::vector<option> const& options = {},
                        std::string const& domain = "") {
  return node(op, inputs, std::vector{output}, options, domain);
}

inline std::string floats(std::string const& name, numbers const& dims, std::vector<float> const& values) {
  message m;
  m.packed(1, dims).number(2, 1).text(8, name).packed(4, std::span<float const>(values));
  return message().text(5, m.bytes()).bytes();
}

inline std::string ints(std::string const& name, numbers const& values) {
  message m;
  m.packed(1, numbers{std::int64_t(values.size())}).number(2, 7).text(8, name).packed(7, values);
  return message().text(5, m.bytes()).bytes();
}

/// An input (11) or an output (12) of samples. An extent of 0 has no name, a negative one is called length.
inline std::string port(std::uint32_t field, std::string const& name, numbers const& dims) {
  message shape;
  shape.text(1, message().text(2, "batch").bytes());
  for (auto const d : dims)
    shape.text(1, d > 0    ? message().number(1, std::uint64_t(d)).bytes()
                  : d == 0 ? std::string()
                           : message().text(2, "length").bytes());
  message const tensor = message().number(1, 1).text(2, shape.bytes());
  return message()
      .text(field, message().text(1, name).text(2, message().text(1, tensor.bytes()).bytes()).bytes())
      .bytes();
}

inline std::string model(std::string const& graph) {
  return message()
      .number(1, 8)
      .text(2, "test")
      .text(7, message().text(2, "graph").bytes() + graph)
      .text(8, message().number(2, 17).bytes())
      .bytes();
}

}  // namespace onnx_parts
