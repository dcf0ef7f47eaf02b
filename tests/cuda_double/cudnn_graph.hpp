// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

// Descriptors are stores of attributes, checked when they are set and when they are finalised; an operation
// graph is interpreted by its definition. There are several engines, as in the library: some are not to be
// used for what their notes say, and compute something that shows; some compute it without a note, as some of
// cuDNN 9.19 do; some take no such graph, or more memory than anybody has.
namespace edl::cuda_double::cudnn {

/// Keeps the reason until this thread asks for its last error.
cudnnStatus_t refuse(cudnnStatus_t status, std::string why);
std::string take_last_error();

struct descriptor;
using reference = std::shared_ptr<descriptor>;

struct tensor {
  std::int64_t id = 0, alignment = 0;
  cudnnDataType_t type{};
  std::array<std::int64_t, 4> extents{}, strides{};
  bool is_virtual = false;

  std::int64_t elements() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  std::size_t bytes() const { return std::size_t(elements()) * (type == CUDNN_DATA_FLOAT ? 4 : 2); }
  bool channels_last() const {
    auto const [n, c, h, w] = extents;
    return strides == std::array<std::int64_t, 4>{h * w * c, 1, w * c, c};
  }
  std::size_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return std::size_t(n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3]);
  }
};

struct convolution {
  std::array<std::int64_t, 2> before, after, stride;
};

struct operation {
  cudnnBackendDescriptorType_t type;
  convolution how{};
  cudnnPointwiseMode_t function{};
  tensor x = {}, w = {},
         y = {};  // of a convolution: image, kernel, response; pointwise: argument, second argument, result
  bool two = false;
};

struct engine {
  std::int64_t number = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::size_t workspace = 0;
  bool runs = true;     // or only its heuristics think so
  bool wrong = false;   // computes something else, so that its use shows
  bool rounds = false;  // factors to tf32
  // These lie: no note and no error says so.
  bool one_border = false;  // what is before the image is taken to be after it, too
  bool forgets = false;     // the last result is not written
  bool trusts = false;      // that memory is aligned to 16 bytes: it forgets where it is not
};

struct value {
  cudnnBackendAttributeType_t type;
  std::vector<std::byte> bytes;
  std::vector<reference> descriptors;
  std::int64_t count = 0;
};

struct descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, value> values = {};
  std::vector<operation> operations = {};  // of a graph
  engine chosen = {};                      // of a configuration, an engine, a plan
  reference graph = {};                    // of those
  int times = 0;                           // that a plan was executed
};

struct rule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t count;  // 0: any
  bool required = true;
  std::vector<cudnnBackendDescriptorType_t> of = {};  // types of the descriptors
};

std::vector<rule> const& rules(cudnnBackendDescriptorType_t type);

template <class T>
std::vector<T> many(descriptor const& d, cudnnBackendAttributeName_t name) {
  auto const& v = d.values.at(name);
  std::vector<T> all(std::size_t(v.count));
  std::memcpy(all.data(), v.bytes.data(), v.bytes.size());
  return all;
}

template <class T>
T one(descriptor const& d, cudnnBackendAttributeName_t name) {
  T value;
  std::memcpy(&value, d.values.at(name).bytes.data(), sizeof(T));
  return value;
}

descriptor const& sub(descriptor const& d, cudnnBackendAttributeName_t name);
tensor tensor_of(descriptor const& d);
operation operation_of(descriptor const& d);
tensor const& result_of(operation const& o);
std::vector<tensor> arguments_of(operation const& o);

cudnnStatus_t check_tensor(descriptor const& d);
cudnnStatus_t check_convolution(descriptor const& d);
cudnnStatus_t check_operation(operation const& o);
cudnnStatus_t check_graph(std::vector<operation> const& operations);

/// What there is for a graph.
std::vector<engine> engines(std::vector<operation> const& graph, cudnnBackendHeurMode_t mode);

/// Computes a graph by its definition, of tensors by their identifiers.
void interpret(std::vector<operation> const& graph, engine const& e,
               std::map<std::int64_t, void*> const& memory, std::byte* workspace);

}  // namespace edl::cuda_double::cudnn
