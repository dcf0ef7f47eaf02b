// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// cuDNN's graph API as values. Each descriptor knows its name, so that an error names the descriptor and the
/// attribute that cuDNN rejected, with cuDNN's message.
namespace edl::cuda_library::cudnn {

/// Throws edl::error with cuDNN's message unless the status is success.
void check(cudnnStatus_t status, std::string_view doing);

class descriptor {
 public:
  descriptor(cudnnBackendDescriptorType_t type, std::string name);
  descriptor(descriptor&& other) noexcept;
  descriptor& operator=(descriptor&& other) noexcept;
  ~descriptor();

  /// `what` is the attribute's name in errors.
  template <class T>
  void set(std::string_view what, cudnnBackendAttributeName_t attribute, T const& value) {
    set(what, attribute, std::span<T const>(&value, 1));
  }
  template <class T>
  void set(std::string_view what, cudnnBackendAttributeName_t attribute, std::span<T const> values) {
    put(what, attribute, type_of(T{}), std::int64_t(values.size()), values.data());
  }
  void set(std::string_view what, cudnnBackendAttributeName_t attribute, descriptor const& value);
  void set(std::string_view what, cudnnBackendAttributeName_t attribute, std::span<descriptor const> values);
  void set(std::string_view what, cudnnBackendAttributeName_t attribute, std::string_view text);

  void finalize();
  cudnnStatus_t try_finalize();

  std::int64_t integer(std::string_view what, cudnnBackendAttributeName_t attribute) const;

  cudnnBackendDescriptor_t get() const { return raw_; }
  std::string const& name() const { return name_; }

 private:
  static constexpr cudnnBackendAttributeType_t type_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
  static constexpr cudnnBackendAttributeType_t type_of(bool) { return CUDNN_TYPE_BOOLEAN; }
  static constexpr cudnnBackendAttributeType_t type_of(std::int64_t) { return CUDNN_TYPE_INT64; }
  static constexpr cudnnBackendAttributeType_t type_of(float) { return CUDNN_TYPE_FLOAT; }
  static constexpr cudnnBackendAttributeType_t type_of(void*) { return CUDNN_TYPE_VOID_PTR; }
  static constexpr cudnnBackendAttributeType_t type_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
  static constexpr cudnnBackendAttributeType_t type_of(cudnnConvolutionMode_t) {
    return CUDNN_TYPE_CONVOLUTION_MODE;
  }
  static constexpr cudnnBackendAttributeType_t type_of(cudnnPointwiseMode_t) {
    return CUDNN_TYPE_POINTWISE_MODE;
  }
  static constexpr cudnnBackendAttributeType_t type_of(cudnnBackendHeurMode_t) {
    return CUDNN_TYPE_HEUR_MODE;
  }

  void put(std::string_view what, cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
           std::int64_t count, void const* values);

  cudnnBackendDescriptor_t raw_ = nullptr;
  std::string name_;
};

/// The GPU for which plans are made.
class target {
 public:
  /// The GPU of the calling thread. Throws edl::error if there is none.
  target();
  /// A GPU that is only described, in cuDNN's serialised form (JSON): plans can be made for it, but not
  /// executed.
  explicit target(std::string_view properties);
  target(target const&) = delete;
  target& operator=(target const&) = delete;
  ~target();

  cudnnHandle_t handle() const { return handle_; }
  descriptor const* properties() const { return properties_ ? &*properties_ : nullptr; }  ///< or null

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<descriptor> properties_;
};

/// A tensor with its extents in the order of the graph API: batch (or filters), channels, height and width;
/// in memory the channels are last. `id` identifies its memory when a plan is executed; `virtual_` tensors
/// never have memory.
struct tensor {
  std::string name;
  std::int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<std::int64_t, 4> extents{};
  std::int64_t alignment = 16;  ///< of its memory, in bytes
  bool virtual_ = false;

  descriptor describe() const;
};

struct padding {
  std::array<std::int64_t, 2> before{}, after{}, stride{1, 1};
};

/// Operations that are computed together. Add them in the order of computation.
class graph {
 public:
  explicit graph(std::string name) : name_(std::move(name)) {}

  /// y = x ∗ w, dx = dy ∗' w, dw = x ∗'' dy; sums are float32.
  void convolve(tensor const& x, tensor const& w, tensor const& y, padding const& p);
  void convolve_data(tensor const& dx, tensor const& w, tensor const& dy, padding const& p);
  void convolve_weights(tensor const& x, tensor const& dw, tensor const& dy, padding const& p);
  void add(tensor const& x, tensor const& b, tensor const& y);  ///< y = x + b, where b is one per channel
  void relu(tensor const& x, tensor const& y);

  /// No operations can be added after this. Throws edl::error if cuDNN finds them inconsistent.
  void finalize(target const& gpu);

  std::string const& name() const { return name_; }
  descriptor const& get() const { return *graph_; }

 private:
  void convolution(char const* name, cudnnBackendDescriptorType_t type,
                   std::array<cudnnBackendAttributeName_t, 6> const& attributes, tensor const& x,
                   tensor const& w, tensor const& y, padding const& p);
  void pointwise(char const* name, cudnnPointwiseMode_t mode, tensor const& x, tensor const* b,
                 tensor const& y);
  descriptor const& known(tensor const& t);

  std::string name_;
  std::vector<std::pair<std::int64_t, std::unique_ptr<descriptor>>> tensors_;
  std::vector<std::unique_ptr<descriptor>> modes_;
  std::vector<descriptor> operations_;
  std::optional<descriptor> graph_;
};

/// One of cuDNN's kernels for a graph, with its numerical notes.
struct kernel_choice {
  descriptor config;
  std::int64_t engine = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;

  bool notes_that(cudnnBackendNumericalNote_t note) const;
};

/// The proposals of cuDNN's heuristics, the fastest by its estimate first. If there are none, the result is
/// empty, and `why` has cuDNN's message.
std::vector<kernel_choice> propose(target const& gpu, graph const& g, cudnnBackendHeurMode_t mode,
                                   std::string& why);

/// A graph with a kernel, ready to run.
class plan {
 public:
  /// Nothing if this kernel cannot run this graph here; `why` then has cuDNN's message.
  static std::optional<plan> make(target const& gpu, std::shared_ptr<graph const> g, kernel_choice choice,
                                  std::string& why);

  std::size_t workspace() const { return workspace_; }  ///< bytes
  kernel_choice const& choice() const { return choice_; }

  struct memory {
    std::int64_t id;
    void const* at;
  };
  /// Issues the plan to the handle's stream.
  void execute(target const& gpu, std::span<memory const> tensors, void* workspace) const;

 private:
  plan(std::shared_ptr<graph const> g, kernel_choice choice, descriptor made);

  std::shared_ptr<graph const> graph_;  // descriptors refer to it
  kernel_choice choice_;
  descriptor plan_;
  std::size_t workspace_ = 0;
};

}  // namespace edl::cuda_library::cudnn
