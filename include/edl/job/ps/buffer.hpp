// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "edl/core/span.hpp"

namespace edl::ps {

/// A handle to an array of floats (on a multiple of 64 bytes, zero at first) that lives as long as one of its
/// handles. Thread safety: distinct handles of one array: safe to copy, read and drop on any thread. If a
/// handle is `sole` after others were dropped, all reads through those have completed.
class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t size);
  buffer(buffer const& other) noexcept;
  buffer(buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  buffer& operator=(buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~buffer();

  view<float> values() const;

  /// Only if the handle is `sole`.
  std::span<float> writable();

  /// Whether there is no other handle.
  bool sole() const;

 private:
  struct block;
  block* block_ = nullptr;
};

/// An array that can be written while others read earlier states. `hold` only increments a count; the first
/// `write` after it, while the handle lives, copies to another array. There is an array for each held state,
/// the current one, and at most `spares` for reuse. Thread safety: used by one thread; handles may be passed
/// to any thread.
class copy_on_write {
 public:
  explicit copy_on_write(std::size_t size, std::size_t spares = 1);

  /// The current state, permanently.
  buffer hold() const { return current_; }

  /// The state, until the next `write`.
  view<float> read() const { return current_.values(); }

  /// The state, for writing; no other handle sees the changes.
  std::span<float> write();

  /// Number of existing arrays, for limits and tests.
  std::size_t buffers() const { return 1 + others_.size(); }

 private:
  std::size_t spares_;
  buffer current_;
  std::vector<buffer> others_;  // states that were handed out, and spare arrays
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/buffer.ipp"
#endif
