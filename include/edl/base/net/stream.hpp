// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/byte_stream.hpp"
#include "edl/base/net/node.hpp"

namespace edl::net {

/// Accepts a connection for raw bytes that a peer has opened, its purpose, and the peer's name for logs.
/// Called on the node's thread; any thread may then use the connection.
using stream_handler =
    std::function<void(byte_stream opened, std::string const& what, std::string const& peer)>;

/// Opens a connection for raw bytes to the first of the peer's addresses that answers and authenticates
/// itself, Unix sockets first. `name` appears in errors; the peer's listener gets `what` (at most 200 bytes).
/// Throws `call_error`. On the node's thread.
asio::awaitable<byte_stream> open_stream(node& on, std::vector<address> peer, std::string name,
                                         std::string what, std::chrono::milliseconds timeout);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/stream.ipp"
#endif
