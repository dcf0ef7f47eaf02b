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

/// The way to one peer. It connects when it is first needed, to the first of the peer's addresses that
/// answers and proves itself (Unix sockets are tried first). When the connection is lost it connects again,
/// with growing pauses of 20 ms to 1 s. An address at which another process answers than the one that it
/// names, or one of another user, job or token, is passed over. That is `unavailable`, and worth another try.
/// Thread safety: distinct and shared objects: safe, but for `call`, which belongs on the node's thread.
class channel {
 public:
  /// `name` stands in errors, e.g. "ps-1". `credential`: what both sides prove to know instead of the node's
  /// secret; it need not outlive the call.
  channel(node& on, std::vector<address> const& peer, std::string name, token const* credential = nullptr);
  channel(channel const&) = delete;
  channel& operator=(channel const&) = delete;
  ~channel();  ///< closes; pending calls fail with `cancelled`

  /// Makes a call; throws `call_error`. Cancelling the coroutine, or its deadline, gives the call up and
  /// tells the peer. The caller's memory is the caller's again when this returns or throws. A call given up
  /// while its request is half sent closes the connection, which the next call opens again. A call that is
  /// not idempotent fails with `unavailable` as soon as the peer cannot be reached; an idempotent one is
  /// tried until its deadline. For compute threads see blocking.hpp.
  asio::awaitable<reply> call(outgoing const& what);

  /// Give the call a name, which must live until `call` returns: GCC 12 destroys braced temporaries within a
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
