// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "edl/core/span.hpp"

namespace edl {

/// Host memory for `T`s, aligned for vector instructions and zeroed once. Never grows; moving it leaves its
/// spans valid. Throws std::bad_alloc. Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T>
class aligned_buffer {
 public:
  static constexpr std::size_t alignment = 64;

  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > std::size_t(-1) / sizeof(T)) throw std::bad_array_new_length();
    data_ = static_cast<T*>(::operator new (size * sizeof(T), std::align_val_t{alignment}));
    for (std::size_t i = 0; i < size; ++i) data_[i] = T{};
  }
  aligned_buffer(aligned_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  aligned_buffer& operator=(aligned_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~aligned_buffer() { ::operator delete (data_, std::align_val_t{alignment}); }

  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }
  view<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace edl
