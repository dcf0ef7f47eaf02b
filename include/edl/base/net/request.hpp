// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "edl/base/wire/frame.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/span.hpp"

namespace edl::net {

class connection;

/// A call as the side that serves it sees it. It lives as long as the handler's coroutine runs, on the node's
/// thread.
class request {
 public:
  request(request const&) = delete;
  request& operator=(request const&) = delete;

  std::uint16_t method() const { return header_.method; }

  /// The serialised protobuf message; valid as long as the request.
  bytes message() const { return message_; }

  /// Bytes of raw payload that the caller sends, bounded by the receiver's limits.
  std::uint64_t payload_size() const { return header_.payload_size; }

  /// Who calls, e.g. "tcp:10.0.0.7:41952".
  std::string const& peer() const;

  /// What is left of the caller's timeout; a year when it waits for ever.
  std::chrono::milliseconds time_left() const;

  /// True once the caller gave up or was lost. The handler is also cancelled: what it awaits throws.
  bool cancelled() const { return cancelled_; }

  /// It lives, and has given this connection up for another one, as nothing came over it.
  bool goes_elsewhere() const;

  /// Receives the payload straight into `into`, which must be as large as the payload together. Call it at
  /// most once, and before waiting for anything else: until the payload is taken the connection's other calls
  /// are held up. A payload that is not read is dropped when the handler replies or ends. Throws `call_error`
  /// when sizes differ (`invalid`) or the caller is lost.
  asio::awaitable<void> read(std::span<std::span<std::byte> const> into);
  asio::awaitable<void> read(std::span<std::byte> into);

  /// Sends the response; returns when the system has taken all of it, until when `message` and `payload` must
  /// stay as they are. Call it once. Throws when the caller is lost.
  asio::awaitable<void> reply(bytes message, std::span<bytes const> payload = {});
  asio::awaitable<void> reply(std::string_view message, std::span<bytes const> payload = {});
  asio::awaitable<void> reply(std::string_view message, bytes payload);

 private:
  friend class connection;
  struct release;  // ends the reading of a payload
  explicit request(connection& on) : on_(on) {}

  connection& on_;
  wire::frame_header header_;
  std::vector<std::byte> message_;
  time_point deadline_;
  asio::cancellation_signal signal_;
  bool cancelled_ = false, replied_ = false, reading_ = false;
};

/// Serves one call. A handler that throws `call_error` fails the call with its code, one that throws another
/// `edl::error` with `internal` and its text. It runs on the node's thread: what computes for long belongs on
/// another
/// (`co_await asio::co_spawn(pool, …, asio::use_awaitable)`).
using handler = std::function<asio::awaitable<void>(request&)>;

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/connection.hpp"
#endif
