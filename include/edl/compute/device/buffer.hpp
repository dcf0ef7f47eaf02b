// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "edl/core/span.hpp"

namespace edl {

namespace detail {

/// Allocates zeroed memory, aligned to a cache line. Large blocks are mapped as pages of their own, huge
/// pages where the system has any. Releasing a block returns its pages to the system, so that the process
/// holds no more than it uses. Throws std::bad_alloc.
void* take_memory(std::size_t bytes);
void give_memory(void* memory, std::size_t bytes) noexcept;

}  // namespace detail

/// Host memory for `T`s, aligned for vector instructions and zeroed once. Never grows; moving it leaves its
/// spans valid. Throws std::bad_alloc. Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T>
  requires std::is_trivially_copyable_v<T>
class aligned_buffer {
 public:
  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > std::size_t(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    data_ = static_cast<T*>(detail::take_memory(size * sizeof(T)));
  }
  aligned_buffer(aligned_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  aligned_buffer& operator=(aligned_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~aligned_buffer() {
    if (data_) detail::give_memory(data_, size_ * sizeof(T));
  }

  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }
  view<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/buffer.ipp"
#endif
