// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "edl/core/inline.hpp"
#include "edl/job/ps/buffer.hpp"

namespace edl::ps {

struct buffer::block {
  static constexpr std::align_val_t alignment{64};

  explicit block(std::size_t n)
      : size(n), data(static_cast<float*>(::operator new(n * sizeof(float), alignment))) {
    std::memset(data, 0, n * sizeof(float));
  }
  ~block() { ::operator delete(data, alignment); }
  block(block const&) = delete;

  std::atomic<std::size_t> handles{1};
  std::size_t size;
  float* data;
};

EDL_INLINE buffer::buffer(std::size_t size) : block_(new block(size)) {}

EDL_INLINE buffer::buffer(buffer const& other) noexcept : block_(other.block_) {
  if (block_) block_->handles.fetch_add(1, std::memory_order_relaxed);
}

EDL_INLINE buffer::~buffer() {
  // Release: reads through this handle complete before the last handle reuses the array.
  if (block_ && block_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block_;
}

EDL_INLINE view<float> buffer::values() const {
  return block_ ? view<float>{block_->data, block_->size} : view<float>{};
}

EDL_INLINE std::span<float> buffer::writable() {
  return block_ ? std::span<float>{block_->data, block_->size} : std::span<float>{};
}

EDL_INLINE bool buffer::sole() const {
  return block_ && block_->handles.load(std::memory_order_acquire) == 1;
}

EDL_INLINE copy_on_write::copy_on_write(std::size_t size, std::size_t spares)
    : spares_(spares), current_(size) {}

EDL_INLINE std::span<float> copy_on_write::write() {
  if (current_.sole()) return current_.writable();
  auto spare = std::find_if(others_.begin(), others_.end(), [](buffer const& b) { return b.sole(); });
  if (spare == others_.end()) spare = others_.insert(spare, buffer(current_.values().size()));
  auto const from = current_.values();
  std::copy(from.begin(), from.end(), spare->writable().begin());
  std::swap(current_, *spare);
  std::size_t sole = 0;
  std::erase_if(others_, [&](buffer const& b) { return b.sole() && ++sole > spares_; });
  return current_.writable();
}

}  // namespace edl::ps
