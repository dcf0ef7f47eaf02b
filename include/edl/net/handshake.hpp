// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>

#include "edl/net/node.hpp"

namespace edl::net {

/// What both sides do before anything else on a connection: see docs/protocol.md. Whoever calls these limits
/// their time; they take at most 1,088 bytes from a peer that has not proved itself. They throw `call_error`
/// when the peer is not of this job or cannot prove it, `edl::error` when it speaks another protocol,
/// `asio::system_error` when it is gone.
asio::awaitable<void> greet_server(asio::generic::stream_protocol::socket& s, node_options const& self);

/// `heard` is set with the first header: who closes before that has said nothing, as probes of a port do.
asio::awaitable<void> greet_client(asio::generic::stream_protocol::socket& s, node_options const& self,
                                   bool& heard);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/net/handshake.ipp"
#endif
