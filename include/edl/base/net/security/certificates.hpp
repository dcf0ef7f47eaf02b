// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // and SSL

namespace edl::net {

/// A text in PEM, and how an error calls it: "--tls_key=FILE".
struct pem {
  std::string text, name;
};

/// What connections of TLS 1.2 and 1.3 with certificates are made of. Throws error when OpenSSL has no
/// memory.
std::shared_ptr<ssl_ctx_st> make_tls_context(bool of_server);

/// Makes it show the first certificate of `chain`, and those that sign it. Throws error that names which of
/// the two cannot be used. Nobody is asked for a passphrase.
void use_certificate(ssl_ctx_st& context, pem const& chain, pem const& key);

/// What a client trusts, and what it shows.
struct trust {
  pem authorities = {};   ///< that sign servers' certificates; an empty text: those that the system trusts
  bool insecure = false;  ///< verifies nothing
  pem certificate = {}, key = {};  ///< of the client; empty texts: it shows none
};

/// A client's context. It takes any given certificate as an authority, not self-signed ones alone. Throws
/// error that names what cannot be used.
std::shared_ptr<ssl_ctx_st> load_trust(trust const& t);

/// What became of a server's certificate.
struct verification {
  std::string name;             ///< that it must be for: a host's, or an address
  std::string other_name;       ///< for messages: how to say another one; may be empty
  std::string other_authority;  ///< likewise: where the authorities are named
  std::string problem = {};     ///< why it is refused, in words; empty: it is not
};

/// A client's session over the connected socket `fd`, before its handshake, which verifies the server's
/// certificate and writes to `v`. It finds names in the certificate's alternative names only (RFC 9525), and
/// compares addresses as addresses. Neither reading nor writing raises SIGPIPE. The caller frees it
/// (SSL_free).
ssl_st* start_tls(ssl_ctx_st& context, int fd, verification& v);

/// After the handshake: `v` is not written to any more.
void end_verification(ssl_st& session);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/security/certificates.ipp"
#endif
