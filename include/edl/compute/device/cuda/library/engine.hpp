// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "edl/compute/device/cuda/library/claim.hpp"
#include "edl/compute/device/cuda/library/compiler.hpp"
#include "edl/compute/device/cuda/library/operations.hpp"

namespace edl::cuda_library {

/// A GPU, and one stream of work on it.
class engine final : public operations {
 public:
  explicit engine(cuda_options const& o);
  ~engine() override;

  std::string describe() const override;
  float* allocate(std::size_t floats) override;
  void release(float* memory, std::size_t floats) noexcept override;
  float* allocate_host(std::size_t floats) override;
  void release_host(float* memory) noexcept override;
  bool pin(std::span<std::byte const> host) override;
  void unpin(std::byte const* host) noexcept override;
  void upload(std::span<std::byte const> host, void* to) override;
  void download(void const* from, std::span<std::byte> host) override;
  void move(in from, out to) override;
  std::size_t free_memory() override;
  void synchronize() override;
  void bind(in parameters) override;
  void refresh() override;
  void replay(std::uint64_t key, std::uint64_t step, std::function<void()> const& work) override;

  void muon(muon_step const& how, std::span<muon_matrix const> of) override;

  void use() override;
  gpu_identity identity() override;
  gpu_meeting draw_meeting() override;
  std::unique_ptr<communicator> join(gpu_meeting const& where, int size, int rank) override;
  void mark(int number) override;
  void await(int number) override;
  void subtract(in a, in b, out to) override;
  void divide(out values, float by) override;
  void add_divided(in x, float by, out to) override;

  void run(generated const& what, generated_call const& with) override;

 private:
  struct piece {
    cudaGraphExec_t graph = nullptr;  // null: no work before the mark
    int mark = -1;                    // the mark after it; −1: none
  };
  struct recording {
    int times = 0, failures = 0;
    std::vector<piece> pieces;
  };

  /// Memory that grows. It is freed only at the end, because recorded graphs refer to it.
  struct growing {
    std::vector<float*> all;
    std::size_t size = 0;
  };
  /// Kernels that were compiled when they were first met; null: there is no such kernel.
  struct compiled {
    cudaLibrary_t library = nullptr;
    cudaKernel_t draw = nullptr, before = nullptr, rows = nullptr, join = nullptr, after = nullptr;
  };
  compiled const& compiled_of(generated const& what);
  void launch(std::string_view of, cudaKernel_t kernel, std::size_t blocks, generated_call& with);

  float* grown(growing& of, std::size_t floats);
  float* scratch(std::size_t floats) override { return grown(scratch_, floats); }
  std::uint16_t* rounded(float const* weights) const override;
  cudaEvent_t point(int mark);
  void begin_piece();
  piece end_piece(int mark);
  std::vector<piece> record(std::function<void()> const& work);
  static void destroy(std::vector<piece> const& pieces) noexcept;

  void take_free_one(int count);
  void muon_together(muon_step const& how, std::span<muon_matrix const* const> of);

  int index_;
  claim claim_;
  edl::precision precision_;
  std::function<void(std::string const&)> warn_;
  cudaStream_t stream_ = nullptr;
  std::uint64_t* step_ = nullptr;
  growing scratch_, moments_of_, matrices_;
  in bound_;
  std::uint16_t* rounded_ = nullptr;
  std::map<std::uint64_t, recording> recordings_;
  std::vector<piece>* recorded_ = nullptr;  // the recording in progress
  std::vector<cudaEvent_t> points_;         // by number
  std::optional<compiler> compiler_;
  std::map<std::tuple<void const*, int, int, int>, compiled> compiled_;  // by program and shape
};

}  // namespace edl::cuda_library
