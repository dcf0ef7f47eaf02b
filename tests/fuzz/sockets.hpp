// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <span>
#include <utility>

#include "edl/base/net/security/secure_socket.hpp"
#include "fuzz.hpp"

namespace fuzz {

inline constexpr std::size_t longest_talk = 32
                                            << 10;  ///< bytes that a pair of sockets takes without a reader

/// Both ends of a connection. `near` is the parser's; the other end has said what it says and will say no
/// more.
struct talk {
  explicit talk(asio::io_context& on, std::span<std::uint8_t const> said) : near(pair(on, said, far)) {}
  ~talk() { ::close(far); }
  talk(talk const&) = delete;
  talk& operator=(talk const&) = delete;

  int far = -1;
  edl::net::secure_socket near;

 private:
  static edl::net::secure_socket::plain_socket pair(asio::io_context& on, std::span<std::uint8_t const> said,
                                                    int& far) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "the system has sockets");
    far = ends[1];
    require(::send(far, said.data(), said.size(), MSG_NOSIGNAL) == ssize_t(said.size()),
            "a socket takes all bytes");
    ::shutdown(far, SHUT_WR);
    edl::net::secure_socket::plain_socket near(on);
    near.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[0]);
    return near;
  }
};

}  // namespace fuzz
