// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace edl::tool::onnx_file {

using numbers = std::vector<std::int64_t>;

/// A tensor of a file: its numbers are floats or integers.
struct tensor {
  numbers dims;
  std::vector<float> floats;
  numbers ints;
  bool of_ints = false;

  std::int64_t size() const;
};

struct attribute {
  std::int64_t i = 0;
  float f = 0;
  std::string s;
  numbers ints;
  std::vector<float> floats;
};

struct node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, attribute> attributes;

  attribute const* find(std::string const& attribute) const;
  std::int64_t number(std::string const& attribute, std::int64_t otherwise) const;
  float real(std::string const& attribute, float otherwise) const;
  numbers list(std::string const& attribute) const;
  std::string text(std::string const& attribute) const;
};

/// An input or an output; an extent without a number is −1 and has a name, or none.
struct port {
  std::string name;
  bool ids = false;
  numbers dims;
  std::vector<std::string> named;

  /// What --extent calls the extent of an axis.
  std::string extent(std::size_t axis) const {
    return named[axis].empty() ? name + "." + std::to_string(axis) : named[axis];
  }
};

/// A graph of ONNX (onnx/onnx.proto3), opset 7 or later.
struct network {
  std::string producer;
  std::int64_t opset = 0;
  std::vector<node> nodes;
  std::map<std::string, tensor> constants;
  std::vector<port> inputs, outputs;
};

/// Reads a file of any producer. Names of nodes' inputs are of an input, a constant or a node before. Tensors
/// lie inside the file, or in one beside or below it. Anything else is an edl::error that names the file, and
/// the offset, tensor or node.
network read_network(std::string const& path);

}  // namespace edl::tool::onnx_file
