// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "edl/compute/device/backend.hpp"

namespace edl {

/// Memory of a backend, zeroed. The host looks into its span only where the backend says so. Movable.
template <class T>
class device_buffer {
 public:
  device_buffer() = default;
  device_buffer(std::shared_ptr<basic_backend<T>> of, std::size_t size)
      : of_(std::move(of)), data_(size > 0 ? of_->allocate(size) : nullptr), size_(size) {}
  device_buffer(device_buffer&& other) noexcept
      : of_(std::move(other.of_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~device_buffer() {
    if (data_) of_->release(data_, size_);
  }

  std::span<T> span() { return {data_, size_}; }
  view<T> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<basic_backend<T>> of_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace edl
