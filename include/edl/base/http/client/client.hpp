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

/// What a server is asked. Host and Content-Length are added.
struct question {
  std::string method, target;  ///< "GET", "/prefix/path?key=value"
  fields headers = {};
  std::string body = {};
  bool harmless = true;  ///< to carry out twice
};

/// Asks one server, and keeps up to 32 connections to it for the next questions. Thread safety: safe; each
/// call opens or takes one connection for itself.
class client {
 public:
  explicit client(peer to) : to_(std::move(to)) {}

  peer const& server() const { return to_; }

  /// Of connections from now on, by `net::load_trust`. Those that were made with others are closed.
  void use(std::shared_ptr<ssl_ctx_st> certificates);
  bool has_certificates() const;

  /// Gets pieces of an answer's body, whose head is there; false: no more of it.
  using sink = std::function<bool(response_parser const& head, std::string_view piece)>;

  /// Asks, and reads the answer until its end, or until `take` wants no more; whatever its code. `sent`: the
  /// question may have reached the server. It is repeated only where the server has closed a kept connection
  /// without an answer. `idle`: once an answer below 300 has begun, it may go on for any time but be silent
  /// for no longer. Throws unreachable, untrusted, stopped_error, and what `take` throws.
  response_parser ask(question const& q, limit const& within, sink const& take, bool& sent,
                      std::optional<std::chrono::milliseconds> idle = {});

  /// Waits, unless that would take longer than until `end`, or `stop` is called: then false.
  bool pause(std::chrono::milliseconds time, time_point end);

  /// Wakes those that pause, now and later.
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
