// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "edl/core/span.hpp"

namespace edl::ps {

/// A handle to an array of floats (on a multiple of 64 bytes, zero at first) that lives as long as one of its
/// handles. Thread safety: distinct handles of one array: safe to copy, read and drop on any thread. A handle
/// that found itself `sole` after others were dropped sees everything that was read through them as done.
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

  /// Only for a handle that is `sole`.
  std::span<float> writable();

  /// Whether there is no other handle.
  bool sole() const;

 private:
  struct block;
  block* block_ = nullptr;
};

/// An array that is written while others read what it was. `hold` costs a count; the first `write` after it,
/// while the handle lives, moves to another array and copies. As many arrays exist as different states are
/// held, the current one, and at most `spares` to be used again. Thread safety: used by one thread; the
/// handles go anywhere.
class copy_on_write {
 public:
  explicit copy_on_write(std::size_t size, std::size_t spares = 1);

  /// The state as it is now, for ever.
  buffer hold() const { return current_; }

  /// The state, until the next `write`.
  view<float> read() const { return current_.values(); }

  /// The state, to be changed; nobody else sees it.
  std::span<float> write();

  /// Arrays that exist now, for limits and tests.
  std::size_t buffers() const { return 1 + others_.size(); }

 private:
  std::size_t spares_;
  buffer current_;
  std::vector<buffer> others_;  // states given out before, and arrays to be used again
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/buffer.ipp"
#endif
