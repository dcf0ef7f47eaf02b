// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_library {

/// Whether the stream is being captured: its work does not run, so nothing can be measured.
bool recording(cuda_kernels::queue const& q);

/// A problem without a chosen kernel was met during a capture, in which none can be measured. The recording
/// fails for this time.
struct met_while_recording : error {
  explicit met_while_recording(std::string const& problem);
};

/// Returns the fastest of `n` alternatives, by the median of three runs each after a warm-up run. `run(i)`
/// issues an alternative to the queue; one that throws edl::error in any run is excluded. Throws the last
/// error if all are excluded.
std::size_t fastest(cuda_kernels::queue const& q, std::size_t n, std::function<void(std::size_t)> const& run);

/// Divides one block of scratch memory into parts, each aligned for any kernel of any library.
class room {
 public:
  /// Adds a part, and returns its offset in bytes from the block's start.
  std::size_t add(std::size_t bytes) {
    std::size_t const at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return at;
  }
  std::size_t floats() const { return (bytes_ > 0 ? bytes_ : 256) / sizeof(float); }

 private:
  std::size_t bytes_ = 0;
};

/// The greatest power of two, at most 256, that divides an address.
inline std::size_t alignment_of(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p) | 256;
  return std::size_t(at & ~(at - 1));
}

}  // namespace edl::cuda_library
