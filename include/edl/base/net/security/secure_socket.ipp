// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <utility>
#include <vector>

#include "edl/base/net/security/secure_socket.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE void secure_socket::close() {
  asio::error_code ignored;
  socket_.close(ignored);
  if (tls_) tls_->detach();
}

EDL_INLINE bool secure_socket::local() const {
  asio::error_code failed;
  auto const end = socket_.local_endpoint(failed);
  return !failed && end.protocol().family() == AF_UNIX;
}

EDL_INLINE asio::awaitable<void> secure_socket::readable() {
  co_await socket_.async_wait(plain_socket::wait_read, asio::use_awaitable);
}

EDL_INLINE asio::awaitable<void> secure_socket::writable() {
  co_await socket_.async_wait(plain_socket::wait_write, asio::use_awaitable);
}

EDL_INLINE asio::awaitable<void> secure_socket::secure(tls_context const& with, tls_session::side who) {
  socket_.non_blocking(true);
  tls_ = std::make_unique<tls_session>(with, socket_.native_handle(), who);
  for (auto step = tls_->handshake(); step != tls_session::step::done; step = tls_->handshake()) {
    if (step == tls_session::step::wants_read)
      co_await readable();
    else
      co_await writable();
  }
}

EDL_INLINE std::vector<std::byte> secure_socket::channel_binding() const {
  if (!tls_) return {};
  auto const b = tls_->channel_binding();
  return {b.begin(), b.end()};
}

EDL_INLINE asio::awaitable<std::byte> secure_socket::peek() {
  socket_.non_blocking(true);
  for (;;) {
    std::byte first{};
    ssize_t const n = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 1) co_return first;
    if (n == 0) throw asio::system_error(asio::error::eof);
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      throw asio::system_error(asio::error_code(errno, asio::system_category()));
    co_await readable();
  }
}

EDL_INLINE std::size_t secure_socket::read_some(std::span<std::byte> into, asio::error_code& failed) {
  return tls_ ? tls_->read(into, failed) : socket_.read_some(asio::buffer(into.data(), into.size()), failed);
}

EDL_INLINE std::size_t secure_socket::write_some(std::span<asio::const_buffer const> from,
                                                 asio::error_code& failed) {
  if (tls_) return tls_->write(from, failed);
  return socket_.write_some(from, failed);
}

EDL_INLINE asio::awaitable<std::size_t> secure_socket::read_some(std::span<std::byte> into) {
  if (!tls_)
    co_return co_await socket_.async_read_some(asio::buffer(into.data(), into.size()), asio::use_awaitable);
  for (;;) {
    asio::error_code failed;
    if (std::size_t const n = tls_->read(into, failed); n > 0) co_return n;
    if (failed != asio::error::would_block) throw asio::system_error(failed);
    co_await readable();
  }
}

EDL_INLINE asio::awaitable<void> secure_socket::read(std::span<std::byte> into) {
  while (!into.empty()) into = into.subspan(co_await read_some(into));
}

EDL_INLINE asio::awaitable<void> secure_socket::write(bytes head, bytes rest) {
  socket_.non_blocking(true);
  while (!head.empty() || !rest.empty() || unsent()) {
    std::array<asio::const_buffer, 2> const parts{asio::const_buffer(head.data(), head.size()),
                                                  asio::const_buffer(rest.data(), rest.size())};
    asio::error_code failed;
    std::size_t const n = write_some(parts, failed), first = std::min(n, head.size());
    head = head.subspan(first);
    rest = rest.subspan(n - first);
    if (failed && failed != asio::error::would_block && failed != asio::error::try_again)
      throw asio::system_error(failed);
    if (failed || unsent()) co_await writable();
  }
}

EDL_INLINE byte_stream secure_socket::release() {
  return byte_stream(descriptor(socket_.release()), std::move(tls_));
}

}  // namespace edl::net
