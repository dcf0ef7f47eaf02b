// SPDX-License-Identifier: Apache-2.0
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.hpp"
#include "edl/core/bfloat16.hpp"
#include "numbers.hpp"

// Descriptors are stores of attributes, checked when they are set and when they are finalised; an operation
// graph is interpreted by its definition. There are several engines, as in the library: some are not to be
// used for what their notes say, and compute something that shows; some take no such graph, or more memory
// than anybody has.
namespace {

using edl::cuda_double::fail;
using edl::cuda_double::product_inputs;

thread_local std::string last_error;

cudnnStatus_t refuse(cudnnStatus_t status, std::string why) {
  last_error = std::move(why);
  return status;
}

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
};

struct box {
  reference of;
};

box& unbox(cudnnBackendDescriptor_t d) { return *static_cast<box*>(d); }

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

struct rule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t count;  // 0: any
  bool required = true;
  std::vector<cudnnBackendDescriptorType_t> of = {};  // types of the descriptors
};

std::vector<rule> const& rules(cudnnBackendDescriptorType_t type) {
  using d = cudnnBackendDescriptorType_t;
  auto const tensors = std::vector<d>{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
  auto const convolve = std::vector<d>{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR};
  static std::map<d, std::vector<rule>> const all{
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4},
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, false}}},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
       {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true,
         convolve},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true,
         convolve},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true,
         convolve},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1}}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
         CUDNN_TYPE_BACKEND_DESCRIPTOR,
         1,
         true,
         {CUDNN_BACKEND_POINTWISE_DESCRIPTOR}},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false, tensors},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true, tensors}}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS,
         CUDNN_TYPE_BACKEND_DESCRIPTOR,
         0,
         true,
         {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR}}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1},
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
         CUDNN_TYPE_BACKEND_DESCRIPTOR,
         1,
         true,
         {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR}}}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
         CUDNN_TYPE_BACKEND_DESCRIPTOR,
         1,
         true,
         {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR}}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 0},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 0},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1}}},
  };
  static std::vector<rule> const none;
  auto const at = all.find(type);
  return at == all.end() ? none : at->second;
}

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

descriptor const& sub(descriptor const& d, cudnnBackendAttributeName_t name) {
  return *d.values.at(name).descriptors.at(0);
}

tensor tensor_of(descriptor const& d) {
  tensor t;
  t.id = one<std::int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  t.alignment = one<std::int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  t.type = one<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
  std::ranges::copy(many<std::int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS), t.extents.begin());
  std::ranges::copy(many<std::int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES), t.strides.begin());
  t.is_virtual =
      d.values.contains(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && one<bool>(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  return t;
}

cudnnStatus_t check_tensor(descriptor const& d) {
  tensor const t = tensor_of(d);
  std::int64_t const least = t.type == CUDNN_DATA_FLOAT ? 4 : 2;
  if (t.type != CUDNN_DATA_FLOAT && t.type != CUDNN_DATA_BFLOAT16)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "tensor: a data type that the double does not know");
  if (std::ranges::any_of(t.extents, [](auto e) { return e < 1; }))
    return refuse(CUDNN_STATUS_BAD_PARAM, "tensor: an extent below 1");
  if (t.alignment < least || (t.alignment & (t.alignment - 1)) != 0)
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "tensor: an alignment that is no power of two, or below its elements'");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(descriptor const& d) {
  if (one<cudnnDataType_t>(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
      one<cudnnConvolutionMode_t>(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
      one<std::int64_t>(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "convolution: a kind that the double does not know");
  for (auto name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS})
    for (auto n : many<std::int64_t>(d, name))
      if (n < 0) return refuse(CUDNN_STATUS_BAD_PARAM, "convolution: negative padding");
  for (auto name : {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS})
    for (auto n : many<std::int64_t>(d, name))
      if (n < 1) return refuse(CUDNN_STATUS_BAD_PARAM, "convolution: a stride or dilation below 1");
  if (many<std::int64_t>(d, CUDNN_ATTR_CONVOLUTION_DILATIONS) != std::vector<std::int64_t>{1, 1})
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "convolution: dilation");
  return CUDNN_STATUS_SUCCESS;
}

operation convolution_of(descriptor const& d) {
  struct names {
    cudnnBackendAttributeName_t x, w, y, how, alpha, beta;
  };
  names const n = d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                      ? names{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA}
                  : d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                      ? names{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}
                      : names{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  operation o{
      .type = d.type, .x = tensor_of(sub(d, n.x)), .w = tensor_of(sub(d, n.w)), .y = tensor_of(sub(d, n.y))};
  descriptor const& how = sub(d, n.how);
  std::ranges::copy(many<std::int64_t>(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), o.how.before.begin());
  std::ranges::copy(many<std::int64_t>(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS), o.how.after.begin());
  std::ranges::copy(many<std::int64_t>(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), o.how.stride.begin());
  if (one<float>(d, n.alpha) != 1 || one<float>(d, n.beta) != 0)
    fail("cuDNN: alpha and beta are not 1 and 0");
  return o;
}

operation operation_of(descriptor const& d) {
  if (d.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return convolution_of(d);
  operation o{.type = d.type,
              .function = one<cudnnPointwiseMode_t>(sub(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                                                    CUDNN_ATTR_POINTWISE_MODE),
              .x = tensor_of(sub(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)),
              .y = tensor_of(sub(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC))};
  o.two = d.values.contains(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  if (o.two) o.w = tensor_of(sub(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  return o;
}

cudnnStatus_t check_operation(operation const& o) {
  if (o.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
    if (o.two != (o.function == CUDNN_POINTWISE_ADD))
      return refuse(CUDNN_STATUS_BAD_PARAM, "pointwise: one argument too many, or too few");
    if (o.x.extents != o.y.extents)
      return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "pointwise: x and y");
    for (std::size_t i = 0; o.two && i < 4; ++i)
      if (o.w.extents[i] != 1 && o.w.extents[i] != o.x.extents[i])
        return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "pointwise: b does not spread over x");
    return CUDNN_STATUS_SUCCESS;
  }
  if (o.x.extents[0] != o.y.extents[0] || o.w.extents[0] != o.y.extents[1] ||
      o.x.extents[1] % o.w.extents[1] != 0 || o.w.extents[0] % (o.x.extents[1] / o.w.extents[1]) != 0)
    return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "convolution: channels, filters or samples");
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t const room = o.x.extents[2 + i] + o.how.before[i] + o.how.after[i] - o.w.extents[2 + i];
    if (room < 0 || room / o.how.stride[i] + 1 != o.y.extents[2 + i])
      return refuse(
          CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
          "convolution: " + std::to_string(o.y.extents[2 + i]) + " places, but the image has others");
  }
  return CUDNN_STATUS_SUCCESS;
}

tensor const& result_of(operation const& o) {
  return o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR     ? o.x
         : o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ? o.w
                                                                                    : o.y;
}

std::vector<tensor> arguments_of(operation const& o) {
  if (o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) return {o.w, o.y};
  if (o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) return {o.x, o.y};
  if (o.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && !o.two) return {o.x};
  return {o.x, o.w};
}

cudnnStatus_t check_graph(std::vector<operation> const& operations) {
  std::vector<std::int64_t> made, used;
  for (auto const& o : operations) {
    for (tensor const& t : arguments_of(o)) {
      if (t.is_virtual && std::ranges::find(made, t.id) == made.end())
        return refuse(CUDNN_STATUS_BAD_PARAM, "graph: a virtual tensor is read that nobody makes");
      used.push_back(t.id);
    }
    if (std::ranges::find(made, result_of(o).id) != made.end())
      return refuse(CUDNN_STATUS_BAD_PARAM, "graph: a tensor is made twice");
    made.push_back(result_of(o).id);
  }
  for (auto const& o : operations) {
    bool const read = std::ranges::find(used, result_of(o).id) != used.end();
    if (result_of(o).is_virtual != read)
      return refuse(CUDNN_STATUS_BAD_PARAM,
                    "graph: a virtual tensor is not read, or a real one lies between");
  }
  return CUDNN_STATUS_SUCCESS;
}

/// What there is for a graph.
std::vector<engine> engines(std::vector<operation> const& graph, cudnnBackendHeurMode_t mode) {
  operation const& o = graph.front();
  bool const half = o.x.type == CUDNN_DATA_BFLOAT16, float_weights = o.w.type == CUDNN_DATA_FLOAT;
  bool const lopsided = o.how.before != o.how.after, alone = graph.size() == 1;
  bool const weights = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  std::int64_t const channels = o.x.extents[1], filters = o.y.extents[1], groups = channels / o.w.extents[1];
  bool aligned = true;
  for (auto const& each : graph)
    for (tensor const& t : {each.x, each.y}) {
      aligned = aligned && t.alignment >= 16;
      if (!t.channels_last()) return {};
    }
  if (groups > 1 && groups == channels) return {};  // nothing for depthwise ones
  std::vector<engine> found;
  auto const add = [&](std::int64_t number, std::vector<cudnnBackendNumericalNote_t> notes,
                       std::size_t workspace = 0) -> engine& {
    return found.emplace_back(engine{.number = number, .notes = std::move(notes), .workspace = workspace});
  };
  if (mode == CUDNN_HEUR_MODE_A && alone) {
    add(0, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}).wrong = true;
    add(3, {CUDNN_NUMERICAL_NOTE_FFT}).wrong = true;
    add(6, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}).wrong = true;
    add(8, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_TENSOR_CORE}).wrong = true;
    add(11, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}).runs = false;
    add(12, {}).runs = false;
    add(13, {}, std::size_t(1) << 30);
  }
  for (auto const& each : graph)
    if (each.two && each.w.type != o.x.type) return {};
  if (mode == CUDNN_HEUR_MODE_A && !alone && (half || channels % 4 == 0) && aligned)
    add(14, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 512).rounds = !half;
  bool const narrow_only = half && weights && float_weights && filters % 4 != 0;
  if (mode == CUDNN_HEUR_MODE_A && alone && aligned && !narrow_only) {
    if (half)
      add(38, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096);
    else if (channels % 4 == 0)
      add(38, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096).rounds = true;
    else
      add(39, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}).rounds = true;
  }
  if (mode == CUDNN_HEUR_MODE_FALLBACK && alone && !lopsided && !narrow_only) add(1, {}, 1000);
  return found;
}

/// A tensor's elements as float32, in the order of its memory.
std::vector<float> fetch(tensor const& t, void const* from) {
  std::vector<float> v(std::size_t(t.elements()));
  if (t.type == CUDNN_DATA_FLOAT)
    std::memcpy(v.data(), from, t.bytes());
  else
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = edl::from_bfloat16(static_cast<std::uint16_t const*>(from)[i]);
  return v;
}

void store(tensor const& t, std::vector<float> const& v, void* to) {
  if (t.type == CUDNN_DATA_FLOAT)
    std::memcpy(to, v.data(), t.bytes());
  else
    for (std::size_t i = 0; i < v.size(); ++i) static_cast<std::uint16_t*>(to)[i] = edl::to_bfloat16(v[i]);
}

/// Calls visit(element of x, of w, of y) for every product that the convolution adds up.
template <class Visit>
void for_each_product(operation const& o, Visit&& visit) {
  auto const [samples, channels, height, width] = o.x.extents;
  auto const [filters, own, rows, columns] = o.w.extents;
  std::int64_t const share = filters / (channels / own);
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t p = 0; p < o.y.extents[2]; ++p)
      for (std::int64_t q = 0; q < o.y.extents[3]; ++q)
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t s = 0; s < columns; ++s) {
            std::int64_t const i = p * o.how.stride[0] - o.how.before[0] + r,
                               j = q * o.how.stride[1] - o.how.before[1] + s;
            if (i < 0 || i >= height || j < 0 || j >= width) continue;
            for (std::int64_t k = 0; k < filters; ++k)
              for (std::int64_t c = 0; c < own; ++c)
                visit(o.x.at(n, k / share * own + c, i, j), o.w.at(k, c, r, s), o.y.at(n, k, p, q));
          }
}

std::vector<float> compute(operation const& o, std::vector<float> a, std::vector<float> b, bool rounds) {
  std::vector<float> out(std::size_t(result_of(o).elements()), 0.0f);
  if (o.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
    auto const [n, c, h, w] = o.x.extents;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < c; ++j)
        for (std::int64_t k = 0; k < h; ++k)
          for (std::int64_t l = 0; l < w; ++l) {
            float const x = a[o.x.at(i, j, k, l)];
            auto const in = [](std::int64_t at, std::int64_t extent) { return extent == 1 ? 0 : at; };
            out[o.y.at(i, j, k, l)] = !o.two ? (x < 0 ? 0.0f : x)
                                             : x + b[o.w.at(in(i, o.w.extents[0]), in(j, o.w.extents[1]),
                                                            in(k, o.w.extents[2]), in(l, o.w.extents[3]))];
          }
    return out;
  }
  if (rounds) product_inputs(a), product_inputs(b);
  if (o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    for_each_product(o, [&](std::size_t x, std::size_t w, std::size_t y) { out[y] += a[x] * b[w]; });
  else if (o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    for_each_product(o, [&](std::size_t x, std::size_t w, std::size_t y) { out[x] += a[w] * b[y]; });
  else
    for_each_product(o, [&](std::size_t x, std::size_t w, std::size_t y) { out[w] += a[x] * b[y]; });
  return out;
}

void interpret(std::vector<operation> const& graph, engine const& e,
               std::map<std::int64_t, void*> const& memory, std::byte* workspace) {
  std::fill_n(workspace, e.workspace, std::byte{0xff});
  std::map<std::int64_t, std::vector<float>> between;
  auto const get = [&](tensor const& t) {
    return t.is_virtual ? between.at(t.id) : fetch(t, memory.at(t.id));
  };
  for (auto const& o : graph) {
    std::vector<tensor> const in = arguments_of(o);
    auto out = compute(o, get(in[0]), in.size() > 1 ? get(in[1]) : std::vector<float>(), e.rounds);
    if (e.wrong)
      for (float& v : out) v = v * 1.25f + 0.5f;
    if (result_of(o).is_virtual)
      between[result_of(o).id] = std::move(out);
    else
      store(result_of(o), out, memory.at(result_of(o).id));
  }
}

}  // namespace

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

std::size_t cudnnGetVersion() { return 91900; }

char const* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM_NULL_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
      return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE:
      return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
    case CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN:
      return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
    default:
      return int(status) / 1000 == 2 ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
  }
}

void cudnnGetLastErrorString(char* message, std::size_t max_size) {
  if (!max_size) return;
  std::size_t const n = std::min(last_error.size(), max_size - 1);
  std::copy_n(last_error.data(), n, message);
  message[n] = 0;
  last_error.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  *d = new box{std::make_shared<descriptor>(descriptor{.type = type})};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete static_cast<box*>(d);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       void const* elements) {
  if (!to || !elements || count < 1) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "nothing to set");
  descriptor& d = *unbox(to).of;
  if (d.finalized) return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalised");
  auto const at = std::ranges::find(rules(d.type), name, &rule::name);
  if (at == rules(d.type).end())
    return refuse(CUDNN_STATUS_BAD_PARAM, "no attribute " + std::to_string(name) +
                                              " of descriptors of type " + std::to_string(d.type));
  if (at->type != type || (at->count != 0 && at->count != count))
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  "attribute " + std::to_string(name) + " is not of type " + std::to_string(type) +
                      ", or not " + std::to_string(count) + " elements");
  value v{.type = type, .bytes = {}, .descriptors = {}, .count = count};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto const* const all = static_cast<cudnnBackendDescriptor_t const*>(elements);
    for (std::int64_t i = 0; i < count; ++i) {
      if (!all[i]) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
      reference const& other = unbox(all[i]).of;
      if (std::ranges::find(at->of, other->type) == at->of.end())
        return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a descriptor of another type");
      if (!other->finalized) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "it is not finalised");
      v.descriptors.push_back(other);
    }
  } else {
    auto const* const first = static_cast<std::byte const*>(elements);
    v.bytes.assign(first, first + std::size_t(count) * size_of(type));
  }
  d.values[name] = std::move(v);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t which) {
  descriptor& d = *unbox(which).of;
  if (d.finalized) return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalised already");
  for (rule const& r : rules(d.type))
    if (r.required && !d.values.contains(r.name))
      return refuse(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(r.name) + " is not set");
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      status = check_tensor(d);
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      status = check_convolution(d);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      status = check_operation(operation_of(d));
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      for (auto const& o : d.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors)
        d.operations.push_back(operation_of(*o));
      status = check_graph(d.operations);
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      auto const& graph = sub(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      if (engines(graph.operations, one<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE)).empty())
        status = refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "no engine for this graph");
      break;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      auto const& config = sub(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      d.chosen = config.chosen, d.graph = config.graph;
      if (!d.chosen.runs) status = refuse(CUDNN_STATUS_NOT_SUPPORTED, "this engine does not run here");
      break;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      if (d.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count !=
          d.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count)
        status = refuse(CUDNN_STATUS_BAD_PARAM, "as many ids as pointers");
      break;
    default:
      break;
  }
  d.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t requested,
                                       std::int64_t* count, void* elements) {
  descriptor& d = *unbox(from).of;
  if (!d.finalized) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "it is not finalised");
  auto const integer = [&](std::int64_t v) {
    if (type != CUDNN_TYPE_INT64 || requested != 1) return refuse(CUDNN_STATUS_BAD_PARAM, "one int64");
    *static_cast<std::int64_t*>(elements) = v, *count = 1;
    return CUDNN_STATUS_SUCCESS;
  };
  if (d.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS &&
      type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    reference const graph = d.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).descriptors.at(0);
    auto const found = engines(graph->operations, one<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE));
    for (std::int64_t i = 0; i < std::min(requested, std::int64_t(found.size())); ++i) {
      descriptor& into = *unbox(static_cast<cudnnBackendDescriptor_t*>(elements)[i]).of;
      if (into.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || into.finalized)
        return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "results are fresh configurations of engines");
      into.chosen = found[std::size_t(i)], into.graph = graph, into.finalized = true;
    }
    *count = requested == 0 ? std::int64_t(found.size()) : std::min(requested, std::int64_t(found.size()));
    return CUDNN_STATUS_SUCCESS;
  }
  if (d.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE &&
      type == CUDNN_TYPE_BACKEND_DESCRIPTOR && requested == 1) {
    descriptor& into = *unbox(*static_cast<cudnnBackendDescriptor_t*>(elements)).of;
    if (into.type != CUDNN_BACKEND_ENGINE_DESCRIPTOR || into.finalized)
      return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "the result is a fresh engine");
    into.chosen = d.chosen, into.graph = d.graph, into.finalized = true, *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX)
    return integer(d.chosen.number);
  if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
    return integer(std::int64_t(d.chosen.workspace));
  if (d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE &&
      type == CUDNN_TYPE_NUMERICAL_NOTE) {
    *count = std::min(requested, std::int64_t(d.chosen.notes.size()));
    std::copy_n(d.chosen.notes.begin(), *count, static_cast<cudnnBackendNumericalNote_t*>(elements));
    return CUDNN_STATUS_SUCCESS;
  }
  return refuse(CUDNN_STATUS_BAD_PARAM, "no attribute " + std::to_string(name) + " to get");
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_box,
                                  cudnnBackendDescriptor_t pack_box) {
  descriptor const &plan = *unbox(plan_box).of, &pack = *unbox(pack_box).of;
  if (!handle) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle");
  if (plan.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      pack.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a plan and a pack");
  if (!plan.finalized || !pack.finalized)
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalised");
  auto const ids = many<std::int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto const places = many<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* const workspace = static_cast<std::byte*>(one<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  std::map<std::int64_t, void*> memory;
  for (std::size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = places[i];
  auto const operations = plan.graph->operations;
  std::size_t real = 0;
  for (auto const& o : operations) {
    std::vector<tensor> all = arguments_of(o);
    all.push_back(result_of(o));
    for (tensor const& t : all) {
      if (t.is_virtual) continue;
      ++real;
      auto const at = memory.find(t.id);
      if (at == memory.end()) return refuse(CUDNN_STATUS_BAD_PARAM, "no memory for a tensor");
      if (reinterpret_cast<std::uintptr_t>(at->second) % std::uintptr_t(t.alignment) != 0)
        return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "memory is not aligned as was said");
      if (!edl::cuda_double::on_device(at->second, t.bytes()))
        fail("cuDNN: a tensor's memory is not the GPU's");
    }
  }
  if (real != memory.size()) return refuse(CUDNN_STATUS_BAD_PARAM, "memory for a tensor that is not there");
  if (plan.chosen.workspace > 0 && (reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0 ||
                                    !edl::cuda_double::on_device(workspace, plan.chosen.workspace)))
    fail("cuDNN: the workspace is too small, not aligned, or not the GPU's");
  edl::cuda_double::enqueue(handle->stream, [operations, e = plan.chosen, memory, workspace] {
    interpret(operations, e, memory, workspace);
  });
  return CUDNN_STATUS_SUCCESS;
}
