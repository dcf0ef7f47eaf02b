// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <string>

#include "edl/net/node.hpp"

namespace edl::net {

/// What both sides do before anything else on a connection: see docs/protocol.md. Whoever calls these limits
/// their time; they take at most 1,088 bytes from a peer that has not proved itself. They throw `call_error`
/// when the peer is not of this job or cannot prove it, `edl::error` when it speaks another protocol,
/// `asio::system_error` when it is gone.
/// `stream`: what raw bytes are to follow for; empty: frames follow. At most 200 bytes.
asio::awaitable<void> greet_server(asio::generic::stream_protocol::socket& s, node_options const& self,
                                   std::string const& stream = {});

/// What the client has said before it proved itself, whether it did or not.
struct greeting {
  bool heard = false;  ///< set with the first header: who closes before has said nothing, as probes of a port
  std::string stream;  ///< as the client's `greet_server` has it
};

asio::awaitable<void> greet_client(asio::generic::stream_protocol::socket& s, node_options const& self,
                                   greeting& said);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/net/handshake.ipp"
#endif
