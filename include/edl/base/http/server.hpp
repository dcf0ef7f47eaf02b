// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "edl/base/http/router.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/log.hpp"

namespace edl::http {

/// What a server takes from clients.
struct limits {
  std::size_t header = 16 << 10;            ///< bytes of a request's head
  std::size_t body = 1 << 20;               ///< bytes of its body
  std::size_t bodies = 64 << 20;            ///< bytes of all bodies at once; more are answered with 503
  std::size_t connections = 256;            ///< open at once; more are answered with 503
  std::chrono::milliseconds head{10'000};   ///< from the first byte of a head to its last; a TLS handshake
  std::chrono::milliseconds read{30'000};   ///< for a whole body
  std::chrono::milliseconds idle{60'000};   ///< between two requests
  std::chrono::milliseconds quiet{10'000};  ///< idle for so long, one makes room where too many are connected
  std::chrono::milliseconds first{1'000};   ///< for the first request of a client, once the server drains
  std::chrono::milliseconds write{30'000};  ///< for an answer, or for one piece of a stream
};

struct server_options {
  std::string host = "127.0.0.1";  ///< what it listens on: a number or a name
  std::uint16_t port = 0;          ///< 0: any
  std::string token = {};          ///< what "Authorization: Bearer" must say; empty: everybody is answered
  std::string token_file = {};     ///< whose first line is the token, instead
  bool token_in_address = false;   ///< "?token=" will do, too: a browser's page can say it nowhere else
  std::string certificate = {};    ///< PEM file of a chain; empty: no TLS
  std::string key = {};            ///< PEM file of its private key
  std::string flags = "--tls_";    ///< how the flags of both begin: errors name `flags` + "key"
  std::chrono::milliseconds token_grace{120'000};  ///< for which a token is still taken once there is another
  limits bounds = {};
  logger log = logger{};
};

/// An HTTP/1.1 server on a node's thread, one coroutine for each connection. It answers what is wrong with a
/// request in JSON, {"error": "…"}: 400, 401, 404, 405, 408, 413, 431, and 503 where too many are connected.
/// The files of the token and the certificate are looked at each second: see `credentials`.
/// Thread safety: distinct and shared objects: safe.
class server {
 public:
  /// Throws `edl::error` that names the address when it cannot be listened on, or a file that cannot be used
  /// and its flag.
  server(net::node& on, server_options o, router routes);
  server(server const&) = delete;
  server& operator=(server const&) = delete;

  /// Closes, and returns when no handler runs any more, unless called on the node's thread.
  ~server();

  std::uint16_t port() const;
  std::string address() const;  ///< "http://127.0.0.1:8080"

  std::size_t connections() const;  ///< open now

  /// From now on each answer ends its connection, so that clients go elsewhere before `drain`.
  void part();

  /// Takes no more connections and requests, ends streams, and waits for the answers that are being made;
  /// what is left after `timeout` is cut off. Who has just connected is still heard for a second. Not on the
  /// node's thread. Whether all were answered.
  bool drain(std::chrono::milliseconds timeout);

  /// Stops listening and closes all connections; their handlers are cancelled.
  void close();

 private:
  struct state;
  std::shared_ptr<state> state_;
  net::node& node_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/server.ipp"
#endif
