// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "edl/base/http/message.hpp"

namespace edl::http {

/// Parses one request (HTTP/1.0 or 1.1, RFC 9112) incrementally. Stores nothing longer than the limits.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class request_parser {
 public:
  request_parser(std::size_t header_limit, std::size_t body_limit);
  request_parser(request_parser&&) noexcept;
  ~request_parser();

  /// Returns the number of consumed bytes. Pass the rest again, followed by more, or to the next request.
  /// Throws `failure`: 400, 413, 417, 431 or 501. It is unusable afterwards.
  std::size_t feed(std::string_view bytes);

  bool headed() const;  ///< everything but the body has arrived: `head` may be called
  bool done() const;

  request const& head() const;
  request take();  ///< of a request that is `done`

  std::size_t held() const;     ///< bytes of the body received
  bool keeps_alive() const;     ///< the client may use the connection again
  bool wants_continue() const;  ///< it waits for 100 Continue before the body
  bool chunks() const;          ///< it accepts a chunked response (HTTP/1.1)

 private:
  void check_framing() const;
  void read_head();
  struct state;
  std::unique_ptr<state> state_;
};

/// Parses the response to a request other than HEAD, likewise. It accepts chunked bodies, sized ones, and
/// those that end with the connection; it skips interim responses (1xx). A head is at most 64 KiB long.
class response_parser {
 public:
  /// Gets pieces of the body; returns false to stop.
  using sink = std::function<bool(std::string_view)>;

  response_parser();
  response_parser(response_parser&&) noexcept;
  response_parser& operator=(response_parser&&) noexcept;
  ~response_parser();

  /// Consumes all bytes. Throws `untrusted`, which names the fault, if they are not a valid response, and
  /// what `take` throws. It is unusable afterwards.
  void feed(std::string_view bytes, sink const& take);

  /// Call when the server has closed the connection: returns whether the response is complete.
  bool end();

  bool headed() const;
  bool done() const;

  int code() const;  ///< of a response that is `headed`
  /// The value of the first field with this name (lower case); empty: there is none.
  std::string_view field(std::string_view name) const;
  /// Whether it is done, and the connection can serve the next request.
  bool reusable() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/parser.ipp"
#endif
