// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <string>

#include "edl/base/net/address.hpp"

namespace edl::net::detail {

/// Connects `s` to an address, trying all that a host's name stands for. Throws `asio::system_error`, and
/// `edl::error` when another user's process listens at a Unix socket. Who sets `too_late` and closes `s` ends
/// it, once the system's resolver has answered.
asio::awaitable<void> connect(asio::generic::stream_protocol::socket& s, address const& to,
                              bool const& too_late);

/// Where a Unix socket listens.
asio::generic::stream_protocol::endpoint local_endpoint(address const& a);

/// Throws `edl::error` unless a process of this user is at the other end of a Unix socket (unix(7),
/// SO_PEERCRED). Names can be taken by anybody once their owner is gone.
void check_owner(asio::generic::stream_protocol::socket& s);

/// Sets what both sides of every connection want: no delay, and a peer whose machine vanished is noticed.
void tune(asio::generic::stream_protocol::socket& s);

/// Who is at the other end, for people.
std::string peer_name(asio::generic::stream_protocol::socket& s, address const& listening);

}  // namespace edl::net::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/transport.ipp"
#endif
