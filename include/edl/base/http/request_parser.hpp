// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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

}  // namespace edl::http

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/request_parser.ipp"
#endif
