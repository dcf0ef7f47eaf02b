// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/base/net/call.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/net/outbound.hpp"
#include "edl/base/net/request.hpp"
#include "edl/base/net/security/secure_socket.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/frame.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/log.hpp"
#include "edl/core/span.hpp"

namespace edl::net {

/// A connection after its handshake: it carries many calls at once, in both directions.
/// Thread safety: only on the node's thread.
class connection : public std::enable_shared_from_this<connection> {
 public:
  /// Starts to serve the peer's calls with `serve` (if empty, they are refused). It lives until it is closed
  /// and its last handler has ended.
  static std::shared_ptr<connection> open(secure_socket s, std::string peer, limits const& bounds,
                                          logger const& log, handler serve,
                                          std::function<void()> at_close = {});

  /// Use `open`.
  connection(secure_socket s, std::string peer, limits const& bounds, logger const& log, handler serve);
  connection(connection const&) = delete;
  connection& operator=(connection const&) = delete;
  ~connection();

  /// Makes a call; throws `call_error`. `what` must stay until this returns. Bytes for an abandoned call are
  /// read and dropped. Abandoning a call whose request is partly sent closes the connection: nothing else
  /// could end the frame without using the caller's memory.
  asio::awaitable<reply> call(outgoing const& what, time_point deadline);

  /// Fails all pending calls with `why` and its text, and cancels all handlers.
  void close(status why, std::string const& text);

  bool closed() const { return closed_; }
  std::string const& peer() const { return peer_; }

  /// The status and text of the end, once closed.
  status closed_status() const { return closed_status_; }
  std::string const& closed_text() const { return closed_text_; }

 private:
  friend class request;
  struct pending;  // a call made here, on the stack of `call`

  asio::awaitable<void> read_loop();
  asio::awaitable<void> write_loop();
  asio::awaitable<void> watch_loop();
  asio::awaitable<void> serve(request& r);
  void retire(request& r);
  void cancel(request& r);

  asio::awaitable<void> on_request(wire::frame_header const& h);
  asio::awaitable<void> on_question(wire::frame_header const& h);
  asio::awaitable<void> on_response(wire::frame_header const& h);
  asio::awaitable<void> on_failure(wire::frame_header const& h);

  // Input: a small buffer for headers and messages; larger data is received directly at its destination.
  std::size_t buffered() const { return end_ - begin_; }
  asio::awaitable<void> fill(std::size_t size);
  asio::awaitable<void> take(std::span<std::byte> into, std::uint64_t& left, bool scattering = false);
  asio::awaitable<void> drop(std::uint64_t& left);
  asio::awaitable<std::string> take_message(wire::frame_header const& h);
  void in_frame(bool waiting);
  void heard() { unanswered_since_ = time_point::max(); }
  void keep_end(std::exception_ptr why);

  // Output.
  void flush();
  void enqueue(outbound& frame);
  void enqueue_owned(wire::frame_header const& h, std::string message);
  void finish(outbound& frame, bool failed);

  pending* find(std::uint64_t call) const;
  void complete(pending& p, status why, std::string text, bool here = false);
  void give_up(pending& p, status why, std::string text);
  void go_elsewhere(std::string const& why);
  void arm(time_point at);
  time_point check_deadlines();
  time_point look_at(pending& p, time_point now);
  asio::awaitable<void> ask_about(std::uint64_t call);
  void check() const;

  asio::any_io_executor on_;
  secure_socket socket_;
  std::string peer_;
  limits bounds_;
  logger log_;
  handler serve_;

  std::vector<std::byte> input_;
  std::size_t begin_ = 0, end_ = 0;
  std::exception_ptr input_end_;      // why receiving has ended
  std::uint64_t payload_left_ = 0;    // of the frame being received
  request* payload_owner_ = nullptr;  // its handler may read it; null: the read loop continues
  event payload_taken_, slot_free_;
  pending* scatter_ = nullptr;  // the call whose memory the read loop receives into

  outbound_queue queue_;
  event blocked_;        // notified when the writing loop must wait
  bool full_ = false;    // the socket is full, or it is other connections' turn
  bool corked_ = false;  // more will be sent before the reading loop waits

  std::vector<pending*> calls_;  // by the lower bits of the call's number
  std::vector<std::uint32_t> free_calls_;
  std::uint64_t sequence_ = 0;
  std::vector<std::unique_ptr<request>> active_, idle_;

  asio::steady_timer timer_;
  time_point armed_ = time_point::max();
  time_point read_since_ = time_point::max();        // within a frame, no byte since
  time_point write_since_ = time_point::max();       // the socket is full since
  time_point unanswered_since_ = time_point::max();  // a call was made, nothing received since
  bool closed_ = false;
  status closed_status_ = status::ok;
  std::string closed_text_;
  std::function<void()> at_close_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/connection.ipp"
#include "edl/base/net/request.ipp"
#endif
