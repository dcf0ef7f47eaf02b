// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "edl/base/http/client/errors.hpp"
#include "edl/core/clock.hpp"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // and SSL

namespace edl::http {

/// The address of a server.
struct endpoint {
  bool tls = true;
  std::string host, port;  ///< without brackets
  std::string prefix;      ///< before every path; without a slash at its end
  std::string authority;   ///< "host:port", as in a Host field

  std::string url() const { return (tls ? "https://" : "http://") + authority; }
};

/// "https://host", "https://[::1]:6443/path", "http://127.0.0.1:8001". Throws error, which quotes it and
/// names `what` it should be.
endpoint parse_endpoint(std::string const& text, std::string_view what);

/// A server, its name in errors, and the required name in its certificate.
struct peer {
  endpoint at;
  std::string name;                           ///< "the API server"
  std::string origin = {};                    ///< of its address, for errors; may be empty
  std::string certified = {};                 ///< the name in its certificate, if not the host's
  std::string other_name, other_authority{};  ///< as in `net::verification`

  std::string describe() const;  ///< "the API server https://host (origin)"
};

/// A limit on waiting.
struct limit {
  std::chrono::milliseconds time;                  ///< the allowed time, for the message
  time_point until;                                ///< its end
  std::function<bool()> const* stopped = nullptr;  ///< called every 100 ms

  static limit of(std::chrono::milliseconds time, std::function<bool()> const* stopped = nullptr) {
    return {time, clock::now() + time, stopped};
  }
};

/// Bytes to and from a server, over TCP or TLS. Unlike a general HTTP client, every wait, including those for
/// a connection and its handshake, has a limit and can be stopped. It trusts only the given authorities, not
/// also the system's. It ignores a certificate's common name (RFC 9525), and compares addresses as addresses.
/// Every call throws unreachable, untrusted or stopped_error.
///
/// Thread safety: one thread at a time.
class client_connection {
 public:
  /// `certificates`: from `net::load_trust`, if the server uses TLS.
  client_connection(peer const& to, std::shared_ptr<ssl_ctx_st> certificates, limit const& within);
  client_connection(client_connection const&) = delete;
  ~client_connection();

  void send(std::string_view bytes, limit const& within);

  /// Waits for at least one byte; 0: the server has closed it.
  std::size_t receive(std::span<char> into, limit const& within);

  /// Whether nothing, in particular no end, has been received since the last response.
  bool idle() const;

 private:
  void open(endpoint const& to, limit const& within);
  void handshake(peer const& to, limit const& within);
  void wait(int events, limit const& within) const;
  void wait_tls(int result, limit const& within);
  void close();
  [[noreturn]] void late(limit const& within) const;
  [[noreturn]] void fail(std::string const& why) const;

  std::string where_;
  std::shared_ptr<ssl_ctx_st> certificates_;
  int fd_ = -1;
  ssl_st* tls_ = nullptr;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/client/client_connection.ipp"
#endif
