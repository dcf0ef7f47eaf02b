// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/tcp.h>

#include <array>
#include <asio/redirect_error.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "edl/base/http/socket.hpp"
#include "edl/core/inline.hpp"

namespace edl::http {

struct server_certificate::state {
  std::shared_ptr<ssl_ctx_st> made = net::make_tls_context(true);
  asio::ssl::context context{(::SSL_CTX_up_ref(made.get()), made.get())};
};

EDL_INLINE server_certificate::server_certificate(pem const& chain, pem const& key)
    : state_(std::make_shared<state>()) {
  net::use_certificate(*state_->made, chain, key);
}

struct socket::tls {
  asio::ssl::stream<asio::ip::tcp::socket&> stream;
};

EDL_INLINE socket::socket(asio::ip::tcp::socket s, server_certificate const* with) : plain_(std::move(s)) {
  asio::error_code failed;
  failed = plain_.non_blocking(true, failed);  // for `write`
  if (with) tls_.reset(new tls{{plain_, with->state_->context}});
}
EDL_INLINE socket::~socket() = default;

EDL_INLINE asio::awaitable<void> socket::handshake() {
  if (tls_) co_await tls_->stream.async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
}

EDL_INLINE asio::awaitable<std::size_t> socket::read_some(std::span<char> into) {
  asio::error_code failed;
  auto const buffer = asio::buffer(into.data(), into.size());
  std::size_t n = 0;
  if (tls_)
    n = co_await tls_->stream.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, failed));
  else
    n = co_await plain_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, failed));
  if (failed && failed != asio::error::eof && failed != asio::ssl::error::stream_truncated)
    throw asio::system_error(failed);
  co_return n;
}

EDL_INLINE asio::awaitable<void> socket::write(std::string_view head, std::string_view body) {
  std::array parts{asio::buffer(head), asio::buffer(body)};
  if (tls_) {
    co_await asio::async_write(tls_->stream, parts, asio::use_awaitable);
    co_return;
  }
  // Usually the socket takes everything at once, without a wait.
  asio::error_code failed;
  std::size_t const taken = plain_.write_some(parts, failed), of_head = std::min(taken, head.size());
  if (failed && failed != asio::error::would_block) throw asio::system_error(failed);
  parts[0] += of_head;
  parts[1] += taken - of_head;
  if (asio::buffer_size(parts) > 0) co_await asio::async_write(plain_, parts, asio::use_awaitable);
}

EDL_INLINE bool socket::left() {
  // Unlike a read it sees an end behind bytes that nobody has read yet, and behind TLS.
  ::tcp_info now{};
  ::socklen_t size = sizeof now;
  if (::getsockopt(plain_.native_handle(), IPPROTO_TCP, TCP_INFO, &now, &size) != 0) return true;
  return now.tcpi_state != TCP_ESTABLISHED;
}

EDL_INLINE asio::awaitable<void> socket::end() {
  asio::error_code failed;
  if (tls_)
    co_await tls_->stream.async_shutdown(asio::redirect_error(asio::use_awaitable, failed));
  else
    failed = plain_.shutdown(asio::ip::tcp::socket::shutdown_send, failed);
}

EDL_INLINE void socket::close() {
  asio::error_code ignored;
  ignored = plain_.close(ignored);
}

}  // namespace edl::http
