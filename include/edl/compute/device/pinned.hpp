// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "edl/compute/device/accelerator.hpp"

namespace edl {

/// Pins host memory for as long as the returned object lives, which must end before the memory does. Small
/// blocks share their pages with others and are not pinned. Thread safety: safe.
inline std::shared_ptr<void> pin(std::shared_ptr<accelerator> const& of, std::span<std::byte const> host) {
  constexpr std::size_t pages_of_its_own = std::size_t(1) << 18;
  if (host.size() < pages_of_its_own || !of->pin(host)) return {};
  return {nullptr, [of, at = host.data()](void*) { of->unpin(at); }};
}

/// Pinned memory of the host, zeroed.
class pinned_buffer {
 public:
  pinned_buffer(std::shared_ptr<accelerator> of, std::size_t size)
      : accelerator_(std::move(of)), data_(accelerator_->allocate_host(size)), size_(size) {}
  pinned_buffer(pinned_buffer const&) = delete;
  ~pinned_buffer() { accelerator_->release_host(data_); }

  std::span<float> span() { return {data_, size_}; }
  view<float> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<accelerator> accelerator_;
  float* data_;
  std::size_t size_;
};

}  // namespace edl
