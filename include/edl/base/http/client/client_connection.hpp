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

/// Where a server is.
struct endpoint {
  bool tls = true;
  std::string host, port;  ///< without brackets
  std::string prefix;      ///< before every path; without a slash at its end
  std::string authority;   ///< "host:port", as in a Host field

  std::string url() const { return (tls ? "https://" : "http://") + authority; }
};

/// "https://host", "https://[::1]:6443/path", "http://127.0.0.1:8001". Throws error that quotes it, and says
/// `what` it should be.
endpoint parse_endpoint(std::string const& text, std::string_view what);

/// A server, how errors call it, and what its certificate has to say.
struct peer {
  endpoint at;
  std::string name;                           ///< "the API server"
  std::string origin = {};                    ///< of its address, for errors; may be empty
  std::string certified = {};                 ///< the name in its certificate, where it is not the host's
  std::string other_name, other_authority{};  ///< as in `net::verification`

  std::string describe() const;  ///< "the API server https://host (origin)"
};

/// How far waiting may go.
struct limit {
  std::chrono::milliseconds time;                  ///< what was granted, for the message
  time_point until;                                ///< its end
  std::function<bool()> const* stopped = nullptr;  ///< asked every 100 ms

  static limit of(std::chrono::milliseconds time, std::function<bool()> const* stopped = nullptr) {
    return {time, clock::now() + time, stopped};
  }
};

/// Bytes to and from a server, over TCP or TLS. It is what a general HTTP client does not give. Each
/// wait, that for a connection and its handshake too, ends in time and can be stopped. Only the given
/// authorities are trusted, not the system's besides. A certificate's common name counts for nothing (RFC
/// 9525), and addresses are compared as addresses. Every call throws unreachable, untrusted or stopped_error.
///
/// Thread safety: one thread at a time.
class client_connection {
 public:
  /// `certificates`: of `net::load_trust`, where it is a server of TLS.
  client_connection(peer const& to, std::shared_ptr<ssl_ctx_st> certificates, limit const& within);
  client_connection(client_connection const&) = delete;
  ~client_connection();

  void send(std::string_view bytes, limit const& within);

  /// Waits for at least one byte; 0: the server has ended it.
  std::size_t receive(std::span<char> into, limit const& within);

  /// Whether nothing has come since the last answer, an end least of all.
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
