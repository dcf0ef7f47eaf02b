// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace edl::cuda_library {

/// Says to the other processes of this machine that a GPU is taken, until this object or its process ends.
/// Movable.
class claim {
 public:
  claim() = default;

  /// On the GPU of this UUID.
  explicit claim(std::span<char const> uuid);
  claim(claim&& other) noexcept;
  claim& operator=(claim&& other) noexcept;
  ~claim();

  /// False: somebody else has it.
  explicit operator bool() const { return socket_ >= 0; }

 private:
  int socket_ = -1;
};

}  // namespace edl::cuda_library
