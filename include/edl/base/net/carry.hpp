// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>

#include "edl/base/net/node.hpp"

namespace edl::net {

/// Runs `work` on the node's thread, like `node::spawn`, for work whose failure matters. If it ends with an
/// exception other than cancellation, calls `failed` with the reason, on the node's thread. `failed` must not
/// throw. Returns false, and does nothing, once the node is stopping. Thread safety: safe.
bool carry(node& on, std::function<asio::awaitable<void>()> work,
           std::function<void(std::string const& why)> failed);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/carry.ipp"
#endif
