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

/// A connected socket whose bytes are encrypted once `secure` has been called. What waits is a coroutine on
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

  /// Makes it TLS. Throws `edl::error` when the peer has not the job's key, `asio::system_error` when it is
  /// gone.
  asio::awaitable<void> secure(tls_context const& with, tls_session::side who);
  bool secured() const { return tls_ != nullptr; }

  /// What a proof on this connection is bound to; empty without TLS.
  std::vector<std::byte> channel_binding() const;

  /// The first byte that the peer has sent, which stays to be read.
  asio::awaitable<std::byte> peek();

  /// As many bytes as there is room for, or as many bytes as there are; no coroutine. 0 with
  /// `asio::error::would_block` or another reason in `failed`.
  std::size_t read_some(std::span<std::byte> into, asio::error_code& failed);
  std::size_t write_some(std::span<asio::const_buffer const> from, asio::error_code& failed);

  /// Whether bytes that `write_some` has taken wait for the socket: call it again, with nothing if need be.
  bool unsent() const { return tls_ && tls_->unsent(); }

  /// Returns when `read_some`, or `write_some`, which would have blocked, should be tried again.
  asio::awaitable<void> readable();
  asio::awaitable<void> writable();

  /// At least one byte; throws `asio::system_error` at the end.
  asio::awaitable<std::size_t> read_some(std::span<std::byte> into);

  /// All of it.
  asio::awaitable<void> read(std::span<std::byte> into);
  asio::awaitable<void> write(bytes head, bytes rest);

  /// Hands it over to a thread of its owner's.
  byte_stream release();

 private:
  plain_socket socket_;
  std::unique_ptr<tls_session> tls_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/secure_socket.ipp"
#endif
