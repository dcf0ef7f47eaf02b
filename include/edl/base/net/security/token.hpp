// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "edl/core/span.hpp"

namespace edl::net {

inline constexpr std::size_t nonce_size = 32, proof_size = 32;
using nonce = std::array<std::byte, nonce_size>;
using proof = std::array<std::byte, proof_size>;

/// Random bytes from the operating system.
nonce draw_nonce();

/// The data that a proof covers: everything that both sides of a connection have exchanged before it. Views.
struct handshake_facts {
  std::string_view job;
  bytes client_nonce, server_nonce;
  std::string_view client, server;  ///< the identities of the two sides
  std::string_view wanted, place;   ///< identity and address that the client dialled
  std::string_view stream;          ///< purpose of the raw bytes that follow; empty: frames follow
  bytes channel;                    ///< the TLS connection's binding; empty without TLS
};

/// The secret that all processes of a job share. It is never sent: both sides of a connection prove that they
/// know it. Thread safety: distinct and shared objects: safe.
class token {
 public:
  /// Throws `edl::error` for fewer than 16 characters: a shorter one can be guessed from one intercepted
  /// proof.
  explicit token(std::string secret);

  /// A new one, 64 hexadecimal digits.
  static token random();

  enum class side { client, server };

  /// HMAC-SHA256 under the secret of (protocol, side, facts), each field preceded by its length: see
  /// docs/protocol.md.
  proof prove(side who, handshake_facts const& facts) const;

  /// Whether `given` is that proof; takes constant time.
  bool verify(bytes given, side who, handshake_facts const& facts) const;

  /// A key for another purpose: HKDF-SHA256 (RFC 5869) of the secret, with `purpose` as salt and `context` as
  /// info. It does not reveal the secret.
  std::array<std::byte, 32> derive(std::string_view purpose, std::string_view context) const;

  /// For passing it to a process of the same job.
  std::string const& secret() const { return secret_; }

 private:
  std::string secret_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/token.ipp"
#endif
