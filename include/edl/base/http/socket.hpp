// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "edl/base/net/security/certificates.hpp"

namespace edl::http {

using net::pem;

/// The certificate that a server presents. Thread safety: shared objects: safe.
class server_certificate {
 public:
  /// Throws `edl::error`, which names the one that cannot be used. Never prompts for a passphrase.
  server_certificate(pem const& chain, pem const& key);

 private:
  friend class socket;
  struct state;
  std::shared_ptr<state> state_;
};

/// A client's connection, encrypted or not. Only on its executor's thread.
class socket {
 public:
  /// `with` null: not encrypted.
  socket(asio::ip::tcp::socket s, server_certificate const* with);
  ~socket();

  asio::ip::tcp::socket& plain() { return plain_; }
  bool secured() const { return tls_ != nullptr; }

  asio::awaitable<void> handshake();

  /// Reads at least one byte; 0 at the end. Throws `asio::system_error`.
  asio::awaitable<std::size_t> read_some(std::span<char> into);

  asio::awaitable<void> write(std::string_view head, std::string_view body);

  /// Whether the client has closed its side, or the connection is gone.
  bool left();

  /// Ends the sending direction.
  asio::awaitable<void> end();

  void close();

 private:
  struct tls;
  asio::ip::tcp::socket plain_;
  std::unique_ptr<tls> tls_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/socket.ipp"
#endif
