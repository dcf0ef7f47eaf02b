// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/cudnn_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/error.hpp"

namespace edl::cuda_library::cudnn {
namespace {

/// cuDNN's message for its last error, which may say more than the status. One line.
std::string words(cudnnStatus_t status) {
  std::array<char, 1024> last{};
  cudnnGetLastErrorString(last.data(), last.size() - 1);
  std::string text = cudnnGetErrorString(status);
  if (last[0]) text += std::string(": ") + last.data();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

void check(cudnnStatus_t status, std::string_view doing) {
  if (status != CUDNN_STATUS_SUCCESS) throw error(fmt::format("cuDNN: {}: {}", doing, words(status)));
}

descriptor::descriptor(cudnnBackendDescriptorType_t type, std::string name) : name_(std::move(name)) {
  cudnnStatus_t const status = cudnnBackendCreateDescriptor(type, &raw_);
  if (status != CUDNN_STATUS_SUCCESS)
    throw error(fmt::format("cuDNN: making {} (descriptor type {}): {}", name_, int(type), words(status)));
}

descriptor::descriptor(descriptor&& other) noexcept
    : raw_(std::exchange(other.raw_, nullptr)), name_(std::move(other.name_)) {}

descriptor& descriptor::operator=(descriptor&& other) noexcept {
  std::swap(raw_, other.raw_);
  std::swap(name_, other.name_);
  return *this;
}

descriptor::~descriptor() {
  if (raw_) (void)cudnnBackendDestroyDescriptor(raw_);
}

void descriptor::put(std::string_view what, cudnnBackendAttributeName_t attribute,
                     cudnnBackendAttributeType_t type, std::int64_t count, void const* values) {
  cudnnStatus_t const status = cudnnBackendSetAttribute(raw_, attribute, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS)
    throw error(fmt::format("cuDNN: {}: setting its {} (attribute {}, type {}, {} of them): {}", name_, what,
                            int(attribute), int(type), count, words(status)));
}

void descriptor::set(std::string_view what, cudnnBackendAttributeName_t attribute, descriptor const& value) {
  put(what, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
}

void descriptor::set(std::string_view what, cudnnBackendAttributeName_t attribute,
                     std::span<descriptor const> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (auto const& v : values) raw.push_back(v.raw_);
  put(what, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::int64_t(raw.size()), raw.data());
}

void descriptor::set(std::string_view what, cudnnBackendAttributeName_t attribute, std::string_view text) {
  put(what, attribute, CUDNN_TYPE_CHAR, std::int64_t(text.size()), text.data());
}

cudnnStatus_t descriptor::try_finalize() { return cudnnBackendFinalize(raw_); }

void descriptor::finalize() {
  cudnnStatus_t const status = try_finalize();
  if (status != CUDNN_STATUS_SUCCESS)
    throw error(fmt::format("cuDNN: {}: it does not hold together: {}", name_, words(status)));
}

std::int64_t descriptor::integer(std::string_view what, cudnnBackendAttributeName_t attribute) const {
  std::int64_t value = 0, count = 0;
  cudnnStatus_t const status = cudnnBackendGetAttribute(raw_, attribute, CUDNN_TYPE_INT64, 1, &count, &value);
  if (status != CUDNN_STATUS_SUCCESS || count != 1)
    throw error(fmt::format("cuDNN: {}: asking for its {} (attribute {}): {}", name_, what, int(attribute),
                            words(status)));
  return value;
}

target::target() { check(cudnnCreate(&handle_), "starting"); }

target::target(std::string_view properties) {
  properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a described GPU");
  properties_->set("description", CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties);
  properties_->finalize();
}

target::~target() {
  if (handle_) (void)cudnnDestroy(handle_);
}

descriptor tensor::describe() const {
  auto const [batch, channels, height, width] = extents;
  std::array<std::int64_t, 4> const strides{height * width * channels, 1, width * channels, channels};
  descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR,
               fmt::format("tensor {} ({} × {} × {} × {}, channels last, data type {}, aligned to {})", name,
                           batch, height, width, channels, int(type), alignment));
  d.set("data type", CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  d.set("extents", CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<std::int64_t const>(extents));
  d.set("strides", CUDNN_ATTR_TENSOR_STRIDES, std::span<std::int64_t const>(strides));
  d.set("id", CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  d.set("alignment", CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  d.set("being virtual", CUDNN_ATTR_TENSOR_IS_VIRTUAL, virtual_);
  d.finalize();
  return d;
}

descriptor const& graph::known(tensor const& t) {
  for (auto const& [id, d] : tensors_)
    if (id == t.id) return *d;
  return *tensors_.emplace_back(t.id, std::make_unique<descriptor>(t.describe())).second;
}

void graph::convolution(char const* name, cudnnBackendDescriptorType_t type,
                        std::array<cudnnBackendAttributeName_t, 6> const& attributes, tensor const& x,
                        tensor const& w, tensor const& y, padding const& p) {
  std::array<std::int64_t, 2> const dilation{1, 1};
  descriptor how(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, fmt::format("convolution of {}", name_));
  how.set("type of sums", CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.set("mode", CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  how.set("dimensions", CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t(2));
  how.set("padding before", CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<std::int64_t const>(p.before));
  how.set("padding after", CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<std::int64_t const>(p.after));
  how.set("stride", CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<std::int64_t const>(p.stride));
  how.set("dilation", CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<std::int64_t const>(dilation));
  how.finalize();

  descriptor op(type, fmt::format("{} of {}", name, name_));
  op.set("image", attributes[0], known(x));
  op.set("kernel", attributes[1], known(w));
  op.set("response", attributes[2], known(y));
  op.set("convolution", attributes[3], how);
  op.set("alpha", attributes[4], 1.0f);
  op.set("beta", attributes[5], 0.0f);
  op.finalize();
  modes_.push_back(std::make_unique<descriptor>(std::move(how)));
  operations_.push_back(std::move(op));
}

void graph::convolve(tensor const& x, tensor const& w, tensor const& y, padding const& p) {
  convolution("the convolution forward", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
              x, w, y, p);
}

void graph::convolve_data(tensor const& dx, tensor const& w, tensor const& dy, padding const& p) {
  convolution(
      "the convolution back to the image", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      dx, w, dy, p);
}

void graph::convolve_weights(tensor const& x, tensor const& dw, tensor const& dy, padding const& p) {
  convolution(
      "the convolution back to the kernel", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
      x, dw, dy, p);
}

void graph::pointwise(char const* name, cudnnPointwiseMode_t mode, tensor const& x, tensor const* b,
                      tensor const& y) {
  descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, fmt::format("{} of {}", name, name_));
  how.set("mode", CUDNN_ATTR_POINTWISE_MODE, mode);
  how.set("precision", CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  how.finalize();

  descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                fmt::format("the operation {} of {}", name, name_));
  op.set("function", CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  op.set("argument", CUDNN_ATTR_OPERATION_POINTWISE_XDESC, known(x));
  if (b) op.set("second argument", CUDNN_ATTR_OPERATION_POINTWISE_BDESC, known(*b));
  op.set("result", CUDNN_ATTR_OPERATION_POINTWISE_YDESC, known(y));
  op.finalize();
  modes_.push_back(std::make_unique<descriptor>(std::move(how)));
  operations_.push_back(std::move(op));
}

void graph::add(tensor const& x, tensor const& b, tensor const& y) {
  pointwise("the bias", CUDNN_POINTWISE_ADD, x, &b, y);
}

void graph::relu(tensor const& x, tensor const& y) {
  pointwise("the relu", CUDNN_POINTWISE_RELU_FWD, x, nullptr, y);
}

void graph::finalize(target const& gpu) {
  graph_.emplace(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, fmt::format("the graph of {}", name_));
  if (gpu.handle()) graph_->set("handle", CUDNN_ATTR_OPERATIONGRAPH_HANDLE, gpu.handle());
  graph_->set("operations", CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<descriptor const>(operations_));
  graph_->finalize();
}

bool kernel_choice::notes_that(cudnnBackendNumericalNote_t note) const {
  return std::ranges::find(notes, note) != notes.end();
}

std::vector<kernel_choice> propose(target const& gpu, graph const& g, cudnnBackendHeurMode_t mode,
                                   std::string& why) {
  descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, fmt::format("heuristics for {}", g.name()));
  heuristics.set("graph", CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g.get());
  heuristics.set("mode", CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (gpu.properties()) heuristics.set("GPU", CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *gpu.properties());
  if (cudnnStatus_t const status = heuristics.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    why = words(status);  // mostly: it has no kernel for such a graph
    return {};
  }

  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                               0, &count, nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<kernel_choice> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    choices.push_back(
        {descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, fmt::format("a kernel for {}", g.name())), 0, {}});
    raw.push_back(choices.back().config.get());
  }
  if (count > 0)
    check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
          heuristics.name() + ": asking for its results");
  while (std::int64_t(choices.size()) > count) choices.pop_back();

  for (auto& c : choices) {
    descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, fmt::format("the engine of {}", c.config.name()));
    cudnnBackendDescriptor_t const into = engine.get();
    std::int64_t one = 0;
    check(cudnnBackendGetAttribute(c.config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   1, &one, const_cast<cudnnBackendDescriptor_t*>(&into)),
          c.config.name() + ": asking for its engine");
    c.engine = engine.integer("number", CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    c.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    std::int64_t notes = 0;
    check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   std::int64_t(c.notes.size()), &notes, c.notes.data()),
          engine.name() + ": asking for its numerical notes");
    c.notes.resize(std::size_t(std::clamp<std::int64_t>(notes, 0, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)));
  }
  return choices;
}

plan::plan(std::shared_ptr<graph const> g, kernel_choice choice, descriptor made)
    : graph_(std::move(g)),
      choice_(std::move(choice)),
      plan_(std::move(made)),
      workspace_(std::size_t(
          std::max<std::int64_t>(0, plan_.integer("workspace", CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)))) {}

std::optional<plan> plan::make(target const& gpu, std::shared_ptr<graph const> g, kernel_choice choice,
                               std::string& why) {
  descriptor made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                  fmt::format("{}, with engine {}", g->name(), choice.engine));
  if (gpu.handle()) made.set("handle", CUDNN_ATTR_EXECUTION_PLAN_HANDLE, gpu.handle());
  if (gpu.properties()) made.set("GPU", CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *gpu.properties());
  made.set("engine", CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice.config);
  if (cudnnStatus_t const status = made.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    why = fmt::format("engine {}: {}", choice.engine, words(status));
    return {};
  }
  return plan(std::move(g), std::move(choice), std::move(made));
}

void plan::execute(target const& gpu, std::span<memory const> tensors, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> places;
  for (auto const& t : tensors) ids.push_back(t.id), places.push_back(const_cast<void*>(t.at));
  descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, fmt::format("memory for {}", plan_.name()));
  pack.set("ids", CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<std::int64_t const>(ids));
  pack.set("pointers", CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(places));
  pack.set("workspace", CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(cudnnBackendExecute(gpu.handle(), plan_.get(), pack.get()), plan_.name());
}

}  // namespace edl::cuda_library::cudnn
