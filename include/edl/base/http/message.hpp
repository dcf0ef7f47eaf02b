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

/// The value of the first field with this name (lower case); empty: there is none.
std::string_view field(fields const& of, std::string_view name);

struct request {
  std::string method;  ///< as sent: "GET"
  std::string path;    ///< as sent, without the query
  std::string query;   ///< the part after '?', as sent
  fields headers = {};
  std::string body = {};
  std::vector<std::string> arguments = {};  ///< the segments for the `{}` of the route's path, decoded
  /// Whether the client has closed its connection, or its side of it. For handlers that take long, while they
  /// run; empty if the request came in another way.
  std::function<bool()> left = {};

  std::string_view field(std::string_view name) const { return http::field(headers, name); }

  /// The value of a key of the query, decoded; empty: there is none.
  std::string parameter(std::string_view key) const;
};

/// Receives the pieces of a streamed response.
class stream_writer {
 public:
  virtual ~stream_writer() = default;

  /// Sends `piece`, and returns when the socket has accepted it. Throws `asio::system_error` if the client is
  /// gone, does not read in time, or the server stops.
  virtual asio::awaitable<void> write(std::string_view piece) = 0;
};

struct response {
  int status = 200;
  std::string type = "application/json";  ///< of the body
  std::string body = {};
  fields headers = {};
  /// Writes the body instead, in chunks (for example server-sent events). It is cancelled when the server
  /// stops; a disconnected client is detected at the next piece.
  std::function<asio::awaitable<void>(stream_writer&)> stream = {};
  bool ends = false;  ///< the stream ends by itself: a server that drains waits for that
};

/// Thrown by a handler for an error response.
struct failure : error {
  failure(int code, std::string const& what, fields more = {})
      : error(what), status(code), headers(std::move(more)) {}
  int status;
  fields headers;
};

/// The response for a failed request: {"error": "…"}.
response to_response(failure const& f);

/// Metrics in the format that the client accepts: OpenMetrics, or the older text format if it accepts only
/// `text/plain`.
response metrics_response(request const& to, std::string openmetrics);

/// "Not Found" for 404.
std::string_view reason(int status);

/// Decodes %XX in `text`, and with `plus` also '+' as ' '. Throws `failure` (400) for a truncated or invalid
/// code.
std::string decoded(std::string_view text, bool plus = false);

/// Encodes all characters of `text` as %XX, except unreserved ones (RFC 3986) and those in `plain`.
std::string percent_encoded(std::string_view text, std::string_view plain = "");

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/message.ipp"
#endif
