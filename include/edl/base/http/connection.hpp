// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/cancellation_signal.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "edl/base/http/message.hpp"
#include "edl/base/http/socket.hpp"

namespace edl::http::detail {

/// A client's connection, with the time limit of its current phase. Only on the node's thread.
struct connection final : stream_writer {
  using clock = std::chrono::steady_clock;
  enum class phase { idle, head, read, answer, write, linger };

  connection(asio::ip::tcp::socket s, server_certificate const* with, std::chrono::milliseconds to_write)
      : socket(std::move(s), with), write_limit(to_write) {}

  void enter(phase p, clock::duration limit);
  void enter_answer();  ///< its time is not limited here

  /// Ends a phase that has lasted too long: wakes the reader of a request, and aborts anything else.
  void look(clock::time_point now);

  /// The unconsumed bytes from the client.
  std::string_view unread() const { return std::string_view(buffer).substr(begin, end - begin); }
  void take(std::size_t n) { begin += n; }

  /// Waits for more; false at the end.
  asio::awaitable<bool> receive();

  asio::awaitable<void> send(response const& r, bool head_only, bool keep, bool chunks);
  asio::awaitable<void> write(std::string_view piece) override;

  /// Lets the client read what was sent before closing the socket, which would discard it.
  asio::awaitable<void> linger();

  http::socket socket;
  std::chrono::milliseconds write_limit;
  phase now = phase::idle;
  clock::time_point since{}, until = clock::time_point::max();  // of the phase
  bool heard = false;                                           // something has arrived
  bool late = false, chunked = false;
  bool streaming = false;  // without an end of its own
  std::string buffer = std::string(8 << 10, '\0');
  std::size_t begin = 0, end = 0;  // of the unread part
  asio::cancellation_signal cancel;
};

}  // namespace edl::http::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/http/connection.ipp"
#endif
