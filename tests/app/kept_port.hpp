// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace job {

/// A port that one process after the other may listen at, and nobody else is given. It stays bound here, and
/// nothing listens at it here.
class kept_port {
 public:
  kept_port() {
    int const one = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const where = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(socket_, where, size) == 0);
    REQUIRE(::getsockname(socket_, where, &size) == 0);
    number_ = ntohs(at.sin_port);
  }
  kept_port(kept_port const&) = delete;
  ~kept_port() { ::close(socket_); }
  std::uint16_t number() const { return number_; }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t number_ = 0;
};

}  // namespace job
