// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/claim.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

namespace edl::cuda_library {

// An abstract socket's name: it is in no file system, and disappears with the last process that holds it.
claim::claim(std::span<char const> uuid) {
  std::string name = "edl-gpu-";
  for (char const c : uuid) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", unsigned(static_cast<unsigned char>(c)));
    name += hex;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto const size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (socket_ >= 0 && ::bind(socket_, reinterpret_cast<sockaddr const*>(&address), size) != 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

claim::claim(claim&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

claim& claim::operator=(claim&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

claim::~claim() {
  if (socket_ >= 0) ::close(socket_);
}

}  // namespace edl::cuda_library
