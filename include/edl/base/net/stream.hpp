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

/// Takes a connection for raw bytes that a peer has opened, what it is for, and who opened it, for people.
/// Called on the node's thread; the bytes are anybody's business.
using stream_handler =
    std::function<void(byte_stream opened, std::string const& what, std::string const& peer)>;

/// Opens a connection for raw bytes to the first of the peer's addresses that answers and proves itself, Unix
/// sockets first. `name` stands in errors, `what` is told to the peer's listener (at most 200 bytes). Throws
/// `call_error`. On the node's thread.
asio::awaitable<byte_stream> open_stream(node& on, std::vector<address> peer, std::string name,
                                         std::string what, std::chrono::milliseconds timeout);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/stream.ipp"
#endif
