// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "edl/cluster/kubernetes/access.hpp"
#include "edl/cluster/kubernetes/errors.hpp"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // and SSL

namespace edl::kubernetes {

/// Whom `a` trusts and who asks, loaded once for many connections: the given authorities only, or the
/// system's, and the client's certificate. Throws untrusted that says which of them is damaged.
std::shared_ptr<ssl_ctx_st> load_certificates(access const& a);

/// What became of a server's certificate.
struct verification {
  std::string name;     ///< that it must be for: a host's, or an address
  std::string problem;  ///< why it is refused, in words; empty: it is not
};

/// A session over the connected socket `fd`, before its handshake, which verifies the server's certificate
/// and writes to `v`. As kubectl does, it finds names in the certificate's alternative names only (RFC 9525),
/// and compares addresses as addresses. It takes any given certificate as an authority, not self-signed ones
/// alone. Neither reading nor writing raises SIGPIPE. The caller frees it (SSL_free).
ssl_st* start_tls(ssl_ctx_st& certificates, int fd, verification& v);

/// After the handshake: `v` is not written to any more.
void end_verification(ssl_st& session);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/trust.ipp"
#endif
