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
  stream_handler streams = {};           ///< accepts peers' streams of raw bytes; without it they are refused
  std::optional<token> credential = {};  ///< the secret that both sides prove to know, instead of the node's
  bool some_suffice = false;  ///< logs addresses that cannot be listened on, unless it is the last one
};

/// Accepts connections at several addresses and serves the calls on them. It closes, counts and logs a
/// connection that does not prove that it knows the job's token; others are not affected. On Unix sockets it
/// accepts only this user's processes. Thread safety: distinct and shared objects: safe.
class listener {
 public:
  /// Throws `edl::error`, which names the address, if it cannot listen there. A Unix socket's path must be in
  /// a directory private to this user: an existing file is replaced.
  listener(node& on, std::vector<address> const& where, handler serve, listener_options o = {});
  listener(listener const&) = delete;
  listener& operator=(listener const&) = delete;

  /// Closes, and returns when all handlers have ended, unless called on the node's thread.
  ~listener();

  /// The addresses that it listens on, in the requested order, with actual ports for 0, and the node's
  /// identity: the form to give to peers.
  std::vector<address> const& addresses() const;

  std::uint64_t accepted() const;   ///< authenticated connections so far
  std::uint64_t rejected() const;   ///< failed ones: garbage, a wrong token, a timeout
  std::size_t connections() const;  ///< open and authenticated now

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
