// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "edl/base/http/message.hpp"

namespace edl::http {

/// Reads one request (HTTP/1.0 or 1.1, RFC 9112) out of bytes as they come. Nothing longer than the limits is
/// kept. Thread safety: distinct objects: safe. Shared objects: unsafe.
class request_parser {
 public:
  request_parser(std::size_t header_limit, std::size_t body_limit);
  request_parser(request_parser&&) noexcept;
  ~request_parser();

  /// Returns how many bytes it has taken. The rest is to be given again, with more behind it, or belongs to
  /// the next request. Throws `failure`: 400, 413, 417, 431 or 501. After that nothing more can be read.
  std::size_t feed(std::string_view bytes);

  bool headed() const;  ///< all but the body has come, and `head` may be asked for
  bool done() const;

  request const& head() const;
  request take();  ///< of a request that is `done`

  std::size_t held() const;     ///< bytes of the body that are there
  bool keeps_alive() const;     ///< the client may use the connection again
  bool wants_continue() const;  ///< it sends the body when it is told to
  bool chunks() const;          ///< it takes an answer in chunks (HTTP/1.1)

 private:
  void check_framing() const;
  void read_head();
  struct state;
  std::unique_ptr<state> state_;
};

/// Reads the answer to a request that was not HEAD, likewise. It takes chunked bodies, sized ones, and those
/// that end with the connection; it skips interim answers (1xx). A head is at most 64 KiB long.
class response_parser {
 public:
  /// Gets pieces of the body; false: no more of it.
  using sink = std::function<bool(std::string_view)>;

  response_parser();
  response_parser(response_parser&&) noexcept;
  response_parser& operator=(response_parser&&) noexcept;
  ~response_parser();

  /// Takes all bytes. Throws `untrusted` that says what is wrong with them, when they are no answer, and what
  /// `take` throws. After that nothing more can be read.
  void feed(std::string_view bytes, sink const& take);

  /// The server has ended the connection: whether that was the answer's end.
  bool end();

  bool headed() const;
  bool done() const;

  int code() const;  ///< of an answer that is `headed`
  /// The value of the first field of that name (lower case); empty: there is none.
  std::string_view field(std::string_view name) const;
  /// Done, and the connection can serve the next request.
  bool reusable() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/parser.ipp"
#endif
