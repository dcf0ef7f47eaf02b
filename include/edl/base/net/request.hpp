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

/// A call on the serving side. It lives while the handler's coroutine runs, on the node's thread.
class request {
 public:
  request(request const&) = delete;
  request& operator=(request const&) = delete;

  std::uint16_t method() const { return header_.method; }

  /// The serialised protobuf message; valid as long as the request.
  bytes message() const { return message_; }

  /// Size of the raw payload that the caller sends, bounded by the receiver's limits.
  std::uint64_t payload_size() const { return header_.payload_size; }

  /// The caller, e.g. "tcp:10.0.0.7:41952".
  std::string const& peer() const;

  /// The rest of the caller's timeout; a year if it waits for ever.
  std::chrono::milliseconds time_left() const;

  /// True once the caller has given up or was lost. The handler is also cancelled: what it awaits throws.
  bool cancelled() const { return cancelled_; }

  /// Whether the caller lives, but has replaced this connection, because it received nothing over it.
  bool goes_elsewhere() const;

  /// Receives the payload directly into `into`, whose total size must equal the payload's. Call it at most
  /// once, and before waiting for anything else: an unread payload blocks the connection's other calls. It is
  /// dropped when the handler replies or ends. Throws `call_error` if sizes differ (`invalid`) or the caller
  /// is lost.
  asio::awaitable<void> read(std::span<std::span<std::byte> const> into);
  asio::awaitable<void> read(std::span<std::byte> into);

  /// Sends the response; returns when the system has accepted all of it. Until then `message` and `payload`
  /// must not change. Call it once. Throws if the caller is lost.
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

/// Serves one call. If a handler throws `call_error`, the call fails with its code; for another `edl::error`
/// with `internal` and its text. It runs on the node's thread: run long computations on another (`co_await
/// asio::co_spawn(pool, …, asio::use_awaitable)`).
using handler = std::function<asio::awaitable<void>(request&)>;

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/connection.hpp"
#endif
