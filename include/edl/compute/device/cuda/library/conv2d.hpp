// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/device/cuda/library/cudnn_graph.hpp"
#include "edl/compute/device/cuda/library/products.hpp"
#include "edl/compute/device/cuda/library/trial.hpp"

namespace edl::cuda_library {

/// Convolutions by cuDNN, and by our own kernels if cuDNN has none that keeps the precision. Every kernel
/// that cuDNN proposes is tried before it is used, because some of its engines have ignored borders without
/// an error.
class convolutions {
 public:
  convolutions(cuda_kernels::queue const& q, products::shared_state const& shared);
  /// For a GPU that is only described (see cudnn::target): this can only report what it would do.
  convolutions(cuda_kernels::queue const& q, products::shared_state const& shared, std::string_view gpu);

  /// `moments`: also computes those of y's channels; there must be no activation then.
  void forward(conv_geometry const& g, int batch, activation f, void const* x, float const* kernel,
               float const* bias, void* y, cuda_kernels::moments_in_parts* moments = nullptr);
  /// Returns true if the gradients take the fewest possible passes over memory.
  bool backward(conv_geometry const& g, int batch, void const* x, float const* kernel, void const* dy,
                void* dx, float* dkernel, float* dbias, products::addition const& onto);

  /// The names of the kernels that compute a convolution forward, back to the kernel and back to the image:
  /// the ones already chosen, whatever followed them; otherwise those of cuDNN's rule, for the given
  /// following operations.
  std::string describe(conv_geometry const& g, int batch, activation f = activation::none, bool bias = false);

 private:
  enum class pass { forward, data, weights };

  /// A problem to compute, with the alignment of its memory.
  struct problem {
    pass direction;
    conv_geometry g;
    int batch;
    activation f = activation::none;
    bool bias = false, moments = false, adds = false, masked = false;
    std::array<std::int64_t, 2> aligned{16, 16};  ///< of image and response, in bytes, at most 16

    using key = std::array<std::int64_t, 20>;
    key identity() const;
    std::string describe() const;
  };

  struct kind {
    bool fused = false;   ///< bias and activation are part of the plan
    bool padded = false;  ///< the image's border is made in memory
    bool wide = true;     ///< gradients of kernels come as float32
  };

  /// How to compute it. Without a plan: by our own kernels, of which the tensor-core one competes with
  /// cuDNN's.
  struct way : kind {
    std::optional<cudnn::plan> plan;
    std::string why;  ///< the reason why there is no plan
    bool tensor_cores = false;

    std::size_t workspace() const { return plan ? plan->workspace() : 0; }
  };
  using tensors = trial::tensors;
  using runner = std::function<void(way const&, tensors const&)>;

  std::shared_ptr<cudnn::graph> build(problem const& p, kind const& k) const;
  std::string collect(problem const& p, kind const& k, std::size_t most, std::vector<way>& ways) const;
  std::vector<way> ways(problem const& p, bool measures) const;
  std::vector<way> right_ways(problem const& p, tensors const& of, runner const& with);
  void run(problem const& p, tensors const& of, runner const& with);

  bool half() const { return q_.half; }
  std::size_t element() const { return half() ? 2 : sizeof(float); }
  cudnnDataType_t type() const { return half() ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT; }
  std::uint16_t const* rounded(float const* kernel) const;
  static std::pair<void const*, bool> kept(tensors const& t);
  void pack(conv_geometry const& g, tensors const& t, void* to) const;
  void execute(way const& w, std::initializer_list<cudnn::plan::memory> tensors, void* workspace);

  cuda_kernels::queue const& q_;
  products::shared_state const& shared_;
  cudnn::target gpu_;
  std::map<problem::key, way> known_;
  std::set<std::pair<pass, std::int64_t>> told_;            // engines that are wrong
  std::set<std::pair<problem::key, std::int64_t>> failed_;  // engines that failed after they were chosen
};

}  // namespace edl::cuda_library
