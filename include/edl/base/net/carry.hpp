// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>

#include "edl/base/net/node.hpp"

namespace edl::net {

/// Runs `work` on the node's thread, as `node::spawn` does, for work that somebody depends on. If it ends by
/// an exception that is no cancellation, `failed` is told why, on the node's thread. `failed` must not throw.
/// False, and nothing happens, once the node is stopping. Thread safety: safe.
bool carry(node& on, std::function<asio::awaitable<void>()> work,
           std::function<void(std::string const& why)> failed);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/carry.ipp"
#endif
