// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "edl/base/net/address.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/request.hpp"
#include "edl/base/net/stream.hpp"

namespace edl::net {

struct listener_options {
  stream_handler streams = {};           ///< takes what peers open for raw bytes; without it they are refused
  std::optional<token> credential = {};  ///< what both sides prove to know, instead of the node's secret
  bool some_suffice = false;  ///< an address that cannot be listened on is logged, unless it is the last one
};

/// Takes connections at some addresses at once and serves the calls on them. A connection that does not prove
/// that it knows the job's token is closed, counted and logged, and harms nothing else. On Unix sockets only
/// this user's processes are taken. Thread safety: distinct and shared objects: safe.
class listener {
 public:
  /// Throws `edl::error` with the address when it cannot be listened on. A Unix socket's path must lie in a
  /// directory that is this user's alone: what is there under that name is replaced.
  listener(node& on, std::vector<address> const& where, handler serve, listener_options o = {});
  listener(listener const&) = delete;
  listener& operator=(listener const&) = delete;

  /// Closes, and returns when no handler runs any more, unless called on the node's thread.
  ~listener();

  /// Where it listens, in the order asked for, with ports that were 0 filled in, and the node's identity.
  /// They are as they are to be told to peers.
  std::vector<address> const& addresses() const;

  std::uint64_t accepted() const;   ///< connections that have proved themselves so far
  std::uint64_t rejected() const;   ///< connections that have not: garbage, a wrong token, silence
  std::size_t connections() const;  ///< open and proved now

  /// Stops listening and closes all connections; their handlers are cancelled.
  void close();

 private:
  struct state;
  std::shared_ptr<state> state_;
  node& node_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/listener.ipp"
#endif
