// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/call.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/status.hpp"

namespace edl::net {

/// A channel to one peer. It connects on first use, to the first of the peer's addresses that answers and
/// authenticates itself (Unix sockets first). If the connection is lost it reconnects, with growing pauses of
/// 20 ms to 1 s. It skips an address at which another process than the named one answers, or one of another
/// user, job or token. That is `unavailable`, and may be retried. Thread safety: distinct and shared objects:
/// safe, except `call`, which must run on the node's thread.
class channel {
 public:
  /// `name` appears in errors, e.g. "ps-1". `credential`: the secret that both sides prove to know instead of
  /// the node's; it need not outlive the call.
  channel(node& on, std::vector<address> const& peer, std::string name, token const* credential = nullptr);
  channel(channel const&) = delete;
  channel& operator=(channel const&) = delete;
  ~channel();  ///< closes; pending calls fail with `cancelled`

  /// Makes a call; throws `call_error`. Cancelling the coroutine, or its deadline, abandons the call and
  /// informs the peer. The caller may reuse its memory when this returns or throws. Abandoning a call whose
  /// request is partly sent closes the connection; the next call reopens it. A call that is not idempotent
  /// fails with `unavailable` as soon as the peer cannot be reached; an idempotent one is retried until its
  /// deadline. For compute threads see blocking.hpp.
  asio::awaitable<reply> call(outgoing const& what);

  /// Pass a named object, which must live until `call` returns: GCC 12 destroys braced temporaries within a
  /// `co_await` expression twice.
  asio::awaitable<reply> call(outgoing&& what) = delete;

  std::string const& name() const;
  bool connected() const;  ///< whether a connection is open now
  void close();

  /// For blocking.hpp.
  node& on() const { return node_; }

 private:
  struct state;
  std::shared_ptr<state> state_;
  node& node_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/channel.ipp"
#endif
