// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <cstddef>
#include <memory>
#include <span>

#include "edl/base/net/byte_stream.hpp"
#include "edl/base/net/security/tls.hpp"
#include "edl/core/span.hpp"

namespace edl::net {

/// A connected socket that is encrypted after `secure` has been called. Waiting functions are coroutines on
/// the socket's executor. Thread safety: only on the node's thread.
class secure_socket {
 public:
  using plain_socket = asio::generic::stream_protocol::socket;

  explicit secure_socket(asio::any_io_executor const& on) : socket_(on) {}
  explicit secure_socket(plain_socket s) : socket_(std::move(s)) {}

  /// The socket beneath, for connecting and accepting.
  plain_socket& plain() { return socket_; }
  asio::any_io_executor executor() { return socket_.get_executor(); }
  void close();

  /// Whether it is a Unix socket.
  bool local() const;

  /// Starts TLS. Throws `edl::error` if the peer does not have the job's key, `asio::system_error` if it is
  /// gone.
  asio::awaitable<void> secure(tls_context const& with, tls_session::side who);
  bool secured() const { return tls_ != nullptr; }

  /// The value that binds a proof to this connection; empty without TLS.
  std::vector<std::byte> channel_binding() const;

  /// The first byte that the peer has sent, without consuming it.
  asio::awaitable<std::byte> peek();

  /// Reads as many bytes as are available and fit; not a coroutine. Returns 0 with `asio::error::would_block`
  /// or another reason in `failed`.
  std::size_t read_some(std::span<std::byte> into, asio::error_code& failed);
  std::size_t write_some(std::span<asio::const_buffer const> from, asio::error_code& failed);

  /// Whether bytes accepted by `write_some` wait for the socket: call it again, even with nothing.
  bool unsent() const { return tls_ && tls_->unsent(); }

  /// Returns when a `read_some` or `write_some` that would have blocked should be retried.
  asio::awaitable<void> readable();
  asio::awaitable<void> writable();

  /// Reads at least one byte; throws `asio::system_error` at the end.
  asio::awaitable<std::size_t> read_some(std::span<std::byte> into);

  /// Reads until `into` is full.
  asio::awaitable<void> read(std::span<std::byte> into);
  asio::awaitable<void> write(bytes head, bytes rest);

  /// Transfers the socket to the caller, for use on any thread.
  byte_stream release();

 private:
  plain_socket socket_;
  std::unique_ptr<tls_session> tls_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/secure_socket.ipp"
#endif
