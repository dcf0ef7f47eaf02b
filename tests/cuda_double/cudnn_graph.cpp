// SPDX-License-Identifier: Apache-2.0
#include "cudnn_graph.hpp"

#include <algorithm>
#include <utility>

#include "device.hpp"

namespace edl::cuda_double::cudnn {
namespace {

thread_local std::string last_error;

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, std::string why) {
  last_error = std::move(why);
  return status;
}

std::string take_last_error() { return std::exchange(last_error, {}); }

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
  if (whim("no_engines")) return {};
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
    bool const forward = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    if (lopsided && !forward) add(weights ? 18 : 50, {}).one_border = true;
    if (groups > 1) add(20, {}).forgets = true;
    if (!aligned) add(24, {}).trusts = true;
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
  if (whim("engines_forget"))
    for (engine& e : found) e.forgets = true;
  return found;
}

}  // namespace edl::cuda_double::cudnn
