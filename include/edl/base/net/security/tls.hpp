// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "edl/core/span.hpp"

namespace edl::net {

class token;

/// TLS 1.3 keys derived from a job's token (RFC 8446, external pre-shared key with Diffie-Hellman), without
/// certificates. Thread safety: shared objects: safe.
class tls_context {
 public:
  /// Throws `edl::error` when OpenSSL cannot be set up.
  tls_context(token const& secret, std::string_view job);

 private:
  friend class tls_session;
  struct state;
  std::shared_ptr<state> state_;
};

/// TLS on a connected non-blocking socket, which the caller owns. No function blocks. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
class tls_session {
 public:
  enum class side { client, server };
  enum class step { done, wants_read, wants_write };
  using binding = std::array<std::byte, 32>;

  /// `on` may be destroyed before the session. `timeout`: for the rest of a record that has begun. Throws
  /// `edl::error` when OpenSSL is out of memory.
  tls_session(tls_context const& on, int socket, side who,
              std::chrono::milliseconds timeout = std::chrono::seconds(10));
  tls_session(tls_session const&) = delete;
  tls_session& operator=(tls_session const&) = delete;
  ~tls_session();

  /// Continues the handshake as far as the socket permits. Throws `edl::error` if the peer does not know the
  /// key or does not speak TLS 1.3.
  step handshake();

  /// A value known only to both sides of this session (RFC 5705, RFC 9266): a proof that includes it is
  /// invalid for other connections. Call after the handshake.
  binding channel_binding() const;

  /// Reads decrypted bytes, at most 1 MiB at once, and returns their number: 0 with
  /// `asio::error::would_block` or `eof` in `failed`. Throws `edl::error` if the data was altered. If that
  /// changed a record's length, what follows counts as its rest, and the record stays incomplete for
  /// `timeout`.
  std::size_t read(std::span<std::byte> into, asio::error_code& failed);

  /// Whether the next `read` may return bytes even if the socket has none.
  bool buffered() const;

  /// Encrypts and sends bytes from the front of `parts`, and returns the number accepted: 0 with
  /// `asio::error::would_block` in `failed` while the socket is full. Accepted bytes may still be `unsent`;
  /// the next call, whose `parts` may be empty, sends them.
  std::size_t write(std::span<asio::const_buffer const> parts, asio::error_code& failed);

  bool unsent() const;

  /// Call when the socket is closed, because its descriptor may be reused: nothing is read or sent any more.
  void detach();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/tls.ipp"
#endif
