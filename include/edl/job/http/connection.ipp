// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <ctime>
#include <iterator>

#include "edl/core/inline.hpp"
#include "edl/job/http/connection.hpp"

namespace edl::http::detail {

inline constexpr std::chrono::seconds linger_limit{2};
inline constexpr std::size_t most_discarded = 1 << 20;

inline std::string head_of(response const& r, bool keep, bool chunks) {
  std::time_t const now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char date[40];
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  std::string head;
  auto const to = std::back_inserter(head);
  fmt::format_to(to, "HTTP/1.1 {} {}\r\nDate: {}\r\n", r.status, reason(r.status), date);
  if (r.status != 204) fmt::format_to(to, "Content-Type: {}\r\n", r.type);
  if (r.stream)
    head += chunks ? "Transfer-Encoding: chunked\r\nCache-Control: no-store\r\n" : "";
  else if (r.status != 204)
    fmt::format_to(to, "Content-Length: {}\r\n", r.body.size());
  for (auto const& [name, value] : r.headers) fmt::format_to(to, "{}: {}\r\n", name, value);
  fmt::format_to(to, "Connection: {}\r\n\r\n", keep ? "keep-alive" : "close");
  return head;
}

EDL_INLINE void connection::enter(phase p, clock::duration limit) {
  now = p;
  until = clock::now() + limit;
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
  std::size_t const n = co_await socket.read_some(scratch);
  bytes.append(scratch.data(), n);
  co_return n > 0;
}

EDL_INLINE asio::awaitable<void> connection::send(response const& r, bool head_only, bool keep, bool chunks) {
  enter(phase::write, write_limit);
  std::string const head = head_of(r, keep, chunks);
  bool const bare = head_only || r.status == 204 || r.stream;
  co_await socket.write(head, bare ? std::string_view() : r.body);
  if (!r.stream || head_only) co_return;
  streaming = true;
  chunked = chunks;
  enter_answer();
  co_await r.stream(*this);
  streaming = false;
  enter(phase::write, write_limit);
  if (chunked) co_await socket.write("0\r\n\r\n", {});
}

EDL_INLINE asio::awaitable<void> connection::write(std::string_view piece) {
  if (piece.empty()) co_return;  // which would be the end
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
  for (std::size_t read = 0; read < most_discarded;) {
    std::size_t const n = co_await socket.read_some(scratch);
    if (n == 0) break;
    read += n;
  }
}

}  // namespace edl::http::detail
