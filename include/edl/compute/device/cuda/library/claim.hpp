// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace edl::cuda_library {

/// Marks a GPU as taken, for the other processes of this machine, until this object or its process ends.
/// Movable.
class claim {
 public:
  claim() = default;

  /// Claims the GPU with this UUID.
  explicit claim(std::span<char const> uuid);
  claim(claim&& other) noexcept;
  claim& operator=(claim&& other) noexcept;
  ~claim();

  /// False: another process has claimed it.
  explicit operator bool() const { return socket_ >= 0; }

 private:
  int socket_ = -1;
};

}  // namespace edl::cuda_library
