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

/// Limits of a server.
struct limits {
  std::size_t header = 16 << 10;            ///< bytes of a request's head
  std::size_t body = 1 << 20;               ///< bytes of its body
  std::size_t bodies = 64 << 20;            ///< bytes of all bodies at once; beyond that 503
  std::size_t connections = 256;            ///< open at once; beyond that 503
  std::chrono::milliseconds head{10'000};   ///< from the first byte of a head to its last; a TLS handshake
  std::chrono::milliseconds read{30'000};   ///< for a whole body
  std::chrono::milliseconds idle{60'000};   ///< between two requests
  std::chrono::milliseconds quiet{10'000};  ///< idle for so long, one makes room where too many are connected
  std::chrono::milliseconds first{1'000};   ///< for the first request of a client, once the server drains
  std::chrono::milliseconds write{30'000};  ///< for a response, or for one piece of a stream
};

struct server_options {
  std::string host = "127.0.0.1";  ///< what it listens on: a number or a name
  std::uint16_t port = 0;          ///< 0: any
  std::string token = {};          ///< required in "Authorization: Bearer"; empty: no authorization
  std::string token_file = {};     ///< alternatively, a file whose first line is the token
  bool token_in_address = false;   ///< also accepts "?token=", because a browser's page cannot set the header
  std::string certificate = {};    ///< PEM file of a chain; empty: no TLS
  std::string key = {};            ///< PEM file of its private key
  std::string flags = "--tls_";    ///< how the flags of both begin: errors name `flags` + "key"
  std::chrono::milliseconds token_grace{120'000};  ///< how long a replaced token stays valid
  limits bounds = {};
  logger log = logger{};
};

/// An HTTP/1.1 server on a node's thread, one coroutine for each connection. It reports errors in JSON,
/// {"error": "…"}: 400, 401, 404, 405, 408, 413, 431, and 503 if too many clients are connected. It checks
/// the files of the token and the certificate every second: see `credentials`. Thread safety: distinct and
/// shared objects: safe.
class server {
 public:
  /// Throws `edl::error`, which names the address if it cannot listen there, or a file that cannot be used
  /// and its flag.
  server(net::node& on, server_options o, router routes);
  server(server const&) = delete;
  server& operator=(server const&) = delete;

  /// Closes, and returns when all handlers have ended, unless called on the node's thread.
  ~server();

  std::uint16_t port() const;
  std::string address() const;  ///< "http://127.0.0.1:8080"

  std::size_t connections() const;  ///< open now

  /// From now on each response closes its connection, so that clients go elsewhere before `drain`.
  void part();

  /// Accepts no more connections and requests, ends streams, and waits for pending responses; aborts the rest
  /// after `timeout`. Clients that have just connected may still send a request for a second. Do not call on
  /// the node's thread. Returns whether all were answered.
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
