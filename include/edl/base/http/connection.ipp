// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <cstring>
#include <ctime>

#include "edl/base/http/connection.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::http::detail {

inline constexpr std::chrono::seconds linger_limit{2};    // without any data
inline constexpr std::chrono::seconds discard_limit{30};  // in total
inline constexpr std::size_t most_discarded = 256 << 20;
inline constexpr std::size_t most_read = 128 << 10;

/// The time in HTTP's format, formatted once a second.
inline std::string_view date_now() {
  thread_local std::time_t of = -1;
  thread_local char text[40];
  thread_local std::size_t size = 0;
  if (std::time_t const now = std::time(nullptr); now != of) {
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    of = now;
  }
  return {text, size};
}

inline std::string head_of(response const& r, bool keep, bool chunks) {
  std::string head;
  head.reserve(256);
  auto const add = [&head](auto const&... pieces) { (..., head.append(std::string_view(pieces))); };
  add("HTTP/1.1 ", std::to_string(r.status), " ", reason(r.status), "\r\nDate: ", date_now(), "\r\n");
  if (r.status != 204) add("Content-Type: ", r.type, "\r\n");
  if (r.stream)
    add(chunks ? "Transfer-Encoding: chunked\r\nCache-Control: no-store\r\n" : "");
  else if (r.status != 204)
    add("Content-Length: ", std::to_string(r.body.size()), "\r\n");
  for (auto const& [name, value] : r.headers) add(name, ": ", value, "\r\n");
  add("Connection: ", keep ? "keep-alive" : "close", "\r\n\r\n");
  return head;
}

EDL_INLINE void connection::enter(phase p, clock::duration limit) {
  now = p;
  since = clock::now();
  until = since + limit;
}

EDL_INLINE void connection::enter_answer() {
  now = phase::answer;
  until = clock::time_point::max();
}

EDL_INLINE void connection::look(clock::time_point at) {
  if (at < until) return;
  if (now != phase::head && now != phase::read) return socket.close();
  late = true;
  asio::error_code ignored;
  socket.plain().cancel(ignored);
}

EDL_INLINE asio::awaitable<bool> connection::receive() {
  invariant(begin <= end && end <= buffer.size(), "unread bytes lie within the buffer");
  if (begin > 0) {
    std::memmove(buffer.data(), buffer.data() + begin, end - begin);
    end -= begin;
    begin = 0;
  }
  if (end == buffer.size()) buffer.resize(2 * end);  // for a head, which the parser bounds
  std::size_t const n = co_await socket.read_some({buffer.data() + end, buffer.size() - end});
  end += n;
  invariant(end <= buffer.size(), "no more bytes are received than the buffer has room for");
  // A large body is read in larger pieces.
  if (end == buffer.size() && end < most_read) buffer.resize(2 * end);
  co_return n > 0;
}

EDL_INLINE asio::awaitable<void> connection::send(response const& r, bool head_only, bool keep, bool chunks) {
  enter(phase::write, write_limit);
  std::string const head = head_of(r, keep, chunks);
  bool const bare = head_only || r.status == 204 || r.stream;
  co_await socket.write(head, bare ? std::string_view() : r.body);
  if (!r.stream || head_only) co_return;
  invariant(!streaming, "one reply is streamed at a time");
  streaming = !r.ends;
  chunked = chunks;
  enter_answer();
  co_await r.stream(*this);
  streaming = false;
  enter(phase::write, write_limit);
  if (chunked) co_await socket.write("0\r\n\r\n", {});
}

EDL_INLINE asio::awaitable<void> connection::write(std::string_view piece) {
  if (piece.empty()) co_return;  // an empty chunk would end the body
  enter(phase::write, write_limit);
  if (chunked)
    co_await socket.write(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece), {});
  else
    co_await socket.write(piece, {});
  enter_answer();
}

EDL_INLINE asio::awaitable<void> connection::linger() {
  enter(phase::linger, linger_limit);
  co_await socket.end();
  auto const until = clock::now() + discard_limit;
  for (std::size_t read = 0; read < most_discarded;) {
    std::size_t const n = co_await socket.read_some(buffer);
    if (n == 0) break;
    read += n;
    // A client that is sending a refused body reads the reply only after its last byte.
    if (clock::now() < until) enter(phase::linger, linger_limit);
  }
}

}  // namespace edl::http::detail
