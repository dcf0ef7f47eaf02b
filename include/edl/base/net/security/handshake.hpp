// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <string>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/security/secure_socket.hpp"

namespace edl::net {

/// The handshake at the start of a connection: see docs/protocol.md. Callers limit their time. Until a peer
/// has authenticated itself, at most 16 KiB of a TLS handshake and 2 KiB of frames are read, and nothing in
/// them is trusted. Both throw `call_error` (`unavailable`) if the peer is not the dialled one, is not of
/// this job or cannot prove it. They throw `edl::error` if it speaks another protocol or version, and
/// `asio::system_error` if it is gone.
///
/// `s` is connected to `dialled`; the other side must prove to be its `peer`. `stream`: purpose of the raw
/// bytes that follow, at most 200 bytes; empty: frames follow.
asio::awaitable<void> greet_server(secure_socket& s, node_options const& self, tls_context const& tls,
                                   address const& dialled, std::string const& stream = {});

/// The client's greeting; authenticated once `greet_client` has returned.
struct greeting {
  bool heard = false;  ///< set with the first byte: a client that closes before is a probe of the port
  std::string stream;  ///< as in the client's `greet_server`
  std::string client;  ///< its identity; empty: none
};

/// `published`: the addresses at which peers dial this process.
asio::awaitable<void> greet_client(secure_socket& s, node_options const& self, tls_context const& tls,
                                   std::vector<address> const& published, greeting& said);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/handshake.ipp"
#endif
