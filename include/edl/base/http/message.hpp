// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/core/error.hpp"

namespace edl::http {

using fields = std::vector<std::pair<std::string, std::string>>;

/// The value of the first field of that name, in lower case; empty: there is none.
std::string_view field(fields const& of, std::string_view name);

struct request {
  std::string method;  ///< as it was sent: "GET"
  std::string path;    ///< as it was sent, without the query
  std::string query;   ///< what stands behind '?', as it was sent
  fields headers = {};
  std::string body = {};
  std::vector<std::string> arguments = {};  ///< what stood for the `{}` of the route's path, decoded

  std::string_view field(std::string_view name) const { return http::field(headers, name); }

  /// The value of a key of the query, decoded; empty: there is none.
  std::string parameter(std::string_view key) const;
};

/// Takes the pieces of an answer that goes on for a while.
class stream_writer {
 public:
  virtual ~stream_writer() = default;

  /// Sends `piece`, and returns when the socket has taken it. Throws `asio::system_error` when the client is
  /// gone, does not read in time, or the server stops.
  virtual asio::awaitable<void> write(std::string_view piece) = 0;
};

struct response {
  int status = 200;
  std::string type = "application/json";  ///< of the body
  std::string body = {};
  fields headers = {};
  /// Writes the body instead, in chunks (server-sent events, for example). It is cancelled when the server
  /// stops; a client that has gone is found at the next piece.
  std::function<asio::awaitable<void>(stream_writer&)> stream = {};
};

/// What a handler throws for an answer that tells an error.
struct failure : error {
  failure(int code, std::string const& what, fields more = {})
      : error(what), status(code), headers(std::move(more)) {}
  int status;
  fields headers;
};

/// The answer to a request that failed: {"error": "…"}.
response to_response(failure const& f);

/// Metrics in the format that the client accepts: OpenMetrics, or what is made of it for those that name
/// `text/plain` alone.
response metrics_response(request const& to, std::string openmetrics);

/// "Not Found" for 404.
std::string_view reason(int status);

/// `text` without %XX, and with `plus` of '+' as ' '. Throws `failure` (400) when it is cut off or no code.
std::string decoded(std::string_view text, bool plus = false);

/// `text` with all but unreserved characters as %XX (RFC 3986), and but `plain`.
std::string percent_encoded(std::string_view text, std::string_view plain = "");

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/message.ipp"
#endif
