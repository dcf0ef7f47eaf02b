// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "edl/base/net/security/identity.hpp"
#include "edl/base/net/security/tls.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/base/net/security/transport_security.hpp"
#include "edl/base/wire/frame.hpp"
#include "edl/core/log.hpp"

namespace edl::net {

/// Limits on what a process accepts from others.
struct limits {
  wire::frame_limits frame = {};
  std::size_t handlers = 1024;  ///< concurrent calls of one connection; more wait in the socket
  /// Unauthenticated connections; beyond that the oldest is closed. Never more than an eighth of the
  /// descriptors that the process may open.
  std::size_t strangers = 256;
  std::chrono::milliseconds handshake{5'000};  ///< for authentication
  std::chrono::milliseconds connect{5'000};    ///< for one address
  std::chrono::milliseconds stall{30'000};  ///< without progress within a frame, after which the peer is lost
  /// After this time without a reply the peer is asked whether it still has the call, then after twice the
  /// time, and so on. If it does not, the reply was lost, and the call fails as `unavailable`.
  std::chrono::milliseconds ask{500};
  /// If nothing has been received for this long since a call was made, and a call, or a query about one, is
  /// past its deadline, the connection is lost.
  std::chrono::milliseconds silence{2'500};
};

struct node_options {
  std::string job;  ///< name of the job; both sides of a connection must agree on it. At most 200 bytes
  token secret;
  logger log = logger{};
  limits bounds = {};
  identity self = {};                                     ///< the identity that this process proves
  transport_security security = transport_security::tls;  ///< of TCP connections
};

namespace detail {
/// A part of a node that the node closes when it stops.
struct service {
  virtual ~service() = default;
  virtual void shut() = 0;
};
}  // namespace detail

/// One thread that does all network I/O of a process (or of a part of it, in tests). Listeners and channels
/// belong to a node. It must outlive them; declare it first. Thread safety: distinct and shared objects:
/// safe.
class node {
 public:
  explicit node(node_options options);
  node(node const&) = delete;
  node& operator=(node const&) = delete;
  ~node();  ///< stops

  node_options const& options() const;

  /// The TLS context of its TCP connections.
  tls_context const& tls() const;

  /// The executor of the node's coroutines; it runs everything on the node's thread, one after the other.
  asio::any_io_executor executor() const;

  bool on_thread() const;  ///< whether the caller is the node's thread

  /// Runs `work` on the node's thread, and logs its exceptions except cancellation. Stopping cancels it.
  /// Returns false, and does nothing, once the node is stopping.
  bool spawn(std::function<asio::awaitable<void>()> work);

  /// Runs `work` on the node's thread soon. Returns false, and does nothing, once the node is stopping.
  bool post(std::function<void()> work);

  /// Closes listeners, channels and connections, cancels handlers and spawned work, and fails pending calls
  /// with `cancelled`. Returns when all of them have ended; on the node's thread it returns at once.
  void stop();

  /// For listeners and channels. Throws `call_error` (`cancelled`) once the node is stopping.
  void attach(std::weak_ptr<detail::service> part);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/node.ipp"
#endif
