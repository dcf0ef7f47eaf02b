// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/http/client/client_connection.hpp"
#include "edl/base/http/parser.hpp"

namespace edl::http {

/// A request to a server. Host and Content-Length are added.
struct question {
  std::string method, target;  ///< "GET", "/prefix/path?key=value"
  fields headers = {};
  std::string body = {};
  bool harmless = true;  ///< safe to repeat
};

/// Sends requests to one server, and keeps up to 32 connections to it for later ones. Thread safety: safe;
/// each call opens or takes its own connection.
class client {
 public:
  explicit client(peer to) : to_(std::move(to)) {}

  peer const& server() const { return to_; }

  /// Sets the certificates of new connections, from `net::load_trust`. Closes connections made with others.
  void use(std::shared_ptr<ssl_ctx_st> certificates);
  bool has_certificates() const;

  /// Gets pieces of a response's body, after its head; returns false to stop.
  using sink = std::function<bool(response_parser const& head, std::string_view piece)>;

  /// Sends a request, and reads the response until its end, or until `take` returns false; for any status
  /// code. `sent`: the request may have reached the server. It is retried only if the server has closed a
  /// kept connection without a response. `idle`: once a response below 300 has begun, it may take any time,
  /// but be silent at most this long. Throws unreachable, untrusted, stopped_error, and what `take` throws.
  response_parser ask(question const& q, limit const& within, sink const& take, bool& sent,
                      std::optional<std::chrono::milliseconds> idle = {});

  /// Waits; returns false if that would take longer than until `end`, or `stop` is called.
  bool pause(std::chrono::milliseconds time, time_point end);

  /// Ends all pauses, now and later.
  void stop();

 private:
  struct resting {
    std::unique_ptr<client_connection> line;
    time_point since;
  };
  std::unique_ptr<client_connection> reuse();
  void keep(std::unique_ptr<client_connection> line, std::shared_ptr<ssl_ctx_st> const& made_with);
  response_parser exchange(client_connection& line, question const& q, limit const& within, sink const& take,
                           std::optional<std::chrono::milliseconds> idle, bool& answered);
  std::string text(question const& q) const;

  peer const to_;
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;
  std::shared_ptr<ssl_ctx_st> certificates_;
  std::vector<resting> pool_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/client/client.ipp"
#endif
