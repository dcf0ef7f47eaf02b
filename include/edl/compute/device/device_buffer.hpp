// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "edl/compute/device/backend.hpp"

namespace edl {

/// Zeroed memory of a backend. The host may access its span only if the backend allows it. Movable.
template <class T>
class device_buffer {
 public:
  device_buffer() = default;
  device_buffer(std::shared_ptr<basic_backend<T>> of, std::size_t size)
      : backend_(std::move(of)), data_(size > 0 ? backend_->allocate(size) : nullptr), size_(size) {}
  device_buffer(device_buffer&& other) noexcept
      : backend_(std::move(other.backend_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~device_buffer() {
    if (data_) backend_->release(data_, size_);
  }

  std::span<T> span() { return {data_, size_}; }
  view<T> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<basic_backend<T>> backend_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace edl
