// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <string>

#include "edl/base/net/address.hpp"

namespace edl::net::detail {

/// Connects `s` to an address, trying all addresses of a host name. Throws `asio::system_error`, and
/// `edl::error` if another user's process listens at a Unix socket. To abort, set `too_late` and close `s`;
/// it ends once the system's resolver has returned.
asio::awaitable<void> connect(asio::generic::stream_protocol::socket& s, address const& to,
                              bool const& too_late);

/// The endpoint of a Unix socket.
asio::generic::stream_protocol::endpoint local_endpoint(address const& a);

/// Throws `edl::error` unless a process of this user is at the other end of a Unix socket (unix(7),
/// SO_PEERCRED). Any process can take a name once its owner is gone.
void check_owner(asio::generic::stream_protocol::socket& s);

/// Sets the options of every connection: no delay, and keep-alive, which detects a peer whose machine has
/// vanished.
void tune(asio::generic::stream_protocol::socket& s);

/// The peer's name, for logs.
std::string peer_name(asio::generic::stream_protocol::socket& s, address const& listening);

}  // namespace edl::net::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/transport.ipp"
#endif
