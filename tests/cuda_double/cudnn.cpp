// SPDX-License-Identifier: Apache-2.0
#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_graph.hpp"
#include "device.hpp"

using namespace edl::cuda_double::cudnn;
using edl::cuda_double::fail, edl::cuda_double::whim;

namespace {

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
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    case CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN:
      return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
    default:
      return int(status) / 1000 == 2 ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
  }
}

void cudnnGetLastErrorString(char* message, std::size_t max_size) {
  if (!max_size) return;
  std::string const last = take_last_error();
  std::size_t const n = std::min(last.size(), max_size - 1);
  std::copy_n(last.data(), n, message);
  message[n] = 0;
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
  descriptor& plan = *unbox(plan_box).of;
  descriptor const& pack = *unbox(pack_box).of;
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
  ++plan.times;
  if (auto const most = whim("engines_fail"); most && plan.times > *most)
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "it has had enough");
  int const milliseconds = whim("engine_tires") == plan.chosen.number && plan.times > 3 ? 1000 : 0;
  edl::cuda_double::enqueue(handle->stream, [operations, e = plan.chosen, memory, workspace, milliseconds] {
    edl::cuda_double::spend(milliseconds);
    interpret(operations, e, memory, workspace);
  });
  return CUDNN_STATUS_SUCCESS;
}
