// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <string>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/security/secure_socket.hpp"

namespace edl::net {

/// What both sides do before anything else on a connection: see docs/protocol.md. Callers limit their time.
/// Until a peer has proved itself, at most 16 KiB of a TLS handshake and 2 KiB of frames are read of it.
/// Nothing that it says is believed. Both throw `call_error` (`unavailable`) when the peer is another than
/// was dialled, is not of this job or cannot prove it. They throw `edl::error` when it speaks another
/// protocol or version, and `asio::system_error` when it is gone.
///
/// `s` is connected to `dialled`, whose `peer` is whom the other side must prove to be. `stream`: what raw
/// bytes are to follow for; empty: frames follow. At most 200 bytes.
asio::awaitable<void> greet_server(secure_socket& s, node_options const& self, tls_context const& tls,
                                   address const& dialled, std::string const& stream = {});

/// What the client has said; true once `greet_client` has returned.
struct greeting {
  bool heard = false;  ///< set with the first byte: a client that closes before is a probe of the port
  std::string stream;  ///< as the client's `greet_server` has it
  std::string client;  ///< its identity; empty: it has none
};

/// `published`: the addresses at which this process is dialled.
asio::awaitable<void> greet_client(secure_socket& s, node_options const& self, tls_context const& tls,
                                   std::vector<address> const& published, greeting& said);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/handshake.ipp"
#endif
