// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // and SSL

namespace edl::net {

/// A PEM text, and its name in errors: "--tls_key=FILE".
struct pem {
  std::string text, name;
};

/// A context for TLS 1.2 and 1.3 with certificates. Throws error if OpenSSL is out of memory.
std::shared_ptr<ssl_ctx_st> make_tls_context(bool of_server);

/// Makes it present the first certificate of `chain`, and those that sign it. Throws error, which names the
/// one of the two that cannot be used. Never prompts for a passphrase.
void use_certificate(ssl_ctx_st& context, pem const& chain, pem const& key);

/// The authorities that a client trusts, and its own certificate.
struct trust {
  pem authorities = {};            ///< of servers' certificates; an empty text: the system's
  bool insecure = false;           ///< verifies nothing
  pem certificate = {}, key = {};  ///< of the client; empty texts: none
};

/// A client's context. It accepts any given certificate as an authority, not only self-signed ones. Throws
/// error, which names the part that cannot be used.
std::shared_ptr<ssl_ctx_st> load_trust(trust const& t);

/// The verification of a server's certificate.
struct verification {
  std::string name;             ///< the required name: a host's, or an address
  std::string other_name;       ///< for messages: how to set another one; may be empty
  std::string other_authority;  ///< likewise: how to set the authorities
  std::string problem = {};     ///< why it was refused; empty: it was not
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
