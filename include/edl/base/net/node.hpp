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

/// What a process takes from others.
struct limits {
  wire::frame_limits frame = {};
  std::size_t handlers = 1024;  ///< calls of one connection served at once; more wait in the socket
  /// Connections that have yet to prove themselves; the oldest is closed. At most an eighth of the
  /// descriptors that the process may open, whatever stands here.
  std::size_t strangers = 256;
  std::chrono::milliseconds handshake{5'000};  ///< for proving it
  std::chrono::milliseconds connect{5'000};    ///< for one address
  std::chrono::milliseconds stall{30'000};  ///< without progress in the middle of a frame: the peer is lost
  /// A call that is not answered for so long is asked about, then after twice the time, and so on. A peer
  /// that does not know of it has lost the reply: the call fails as `unavailable`.
  std::chrono::milliseconds ask{500};
  /// Nothing has come since a call was made so long ago, and a call, or a question about one, is over its
  /// deadline: the connection is lost.
  std::chrono::milliseconds silence{2'500};
};

struct node_options {
  std::string job;  ///< name of the job; both sides of a connection must agree on it. At most 200 bytes
  token secret;
  logger log = logger{};
  limits bounds = {};
  identity self = {};                                     ///< what this process proves to be
  transport_security security = transport_security::tls;  ///< of TCP connections
};

namespace detail {
/// Something that a node ends when it stops.
struct service {
  virtual ~service() = default;
  virtual void shut() = 0;
};
}  // namespace detail

/// One thread that does all the network's work of a process (or of a part of it, in tests). Listeners and
/// channels live on a node. It must outlive them; declare it first. Thread safety: distinct and shared
/// objects: safe.
class node {
 public:
  explicit node(node_options options);
  node(node const&) = delete;
  node& operator=(node const&) = delete;
  ~node();  ///< stops

  node_options const& options() const;

  /// What its TCP connections are encrypted with.
  tls_context const& tls() const;

  /// Where the node's coroutines run; anything handed to it runs on the node's thread, one after the other.
  asio::any_io_executor executor() const;

  bool on_thread() const;  ///< whether the caller is the node's thread

  /// Runs `work` on the node's thread; what it throws is logged, but for its cancellation. Stopping cancels
  /// it. False, and nothing happens, once the node is stopping.
  bool spawn(std::function<asio::awaitable<void>()> work);

  /// Runs `work` on the node's thread soon. False, and nothing happens, once the node is stopping.
  bool post(std::function<void()> work);

  /// Closes listeners, channels and connections, cancels handlers and spawned work, and fails pending calls
  /// with `cancelled`. It returns when all of it has ended; on the node's thread it returns at once.
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
