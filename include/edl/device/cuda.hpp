// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "edl/device/any_device.hpp"
#include "edl/device/cuda/backend.hpp"

namespace edl {

/// Pins host memory for as long as what it returns lives, which is less than that memory does. Small memory,
/// which shares its pages, is left as it is. Thread safety: safe.
inline std::shared_ptr<void> pin(std::shared_ptr<cuda_backend> const& of, std::span<std::byte const> host) {
  constexpr std::size_t pages_of_its_own = std::size_t(1) << 18;
  if (host.size() < pages_of_its_own || !of->pin(host)) return {};
  return {nullptr, [of, at = host.data()](void*) { of->unpin(at); }};
}

/// Pinned memory of the host, zeroed.
class pinned_buffer {
 public:
  pinned_buffer(std::shared_ptr<cuda_backend> of, std::size_t size)
      : of_(std::move(of)), data_(of_->allocate_host(size)), size_(size) {}
  pinned_buffer(pinned_buffer const&) = delete;
  ~pinned_buffer() { of_->release_host(data_); }

  std::span<float> span() { return {data_, size_}; }
  view<float> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<cuda_backend> of_;
  float* data_;
  std::size_t size_;
};

/// A GPU: what `cuda_backend` promises, as a device. Throws edl::error where there is none. Movable. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class cuda : public any_device {
 public:
  using options = cuda_options;

  explicit cuda(options const& o = {}) : cuda(open_cuda(o)) {}

  cuda_backend* operator->() const { return gpu_.get(); }
  std::shared_ptr<cuda_backend> const& backend() const { return gpu_; }

 private:
  explicit cuda(std::shared_ptr<cuda_backend> gpu) : any_device(gpu), gpu_(std::move(gpu)) {}

  std::shared_ptr<cuda_backend> gpu_;
};

static_assert(device<cuda>);

}  // namespace edl
