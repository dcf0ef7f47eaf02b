// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <asio/redirect_error.hpp>
#include <asio/ssl.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "edl/base/http/socket.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::http {

struct server_certificate::state {
  asio::ssl::context context{asio::ssl::context::tls_server};
};

namespace detail {

/// Instead of OpenSSL's own, which asks at the terminal.
inline int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace detail

EDL_INLINE server_certificate::server_certificate(pem const& chain, pem const& key)
    : state_(std::make_shared<state>()) {
  auto& c = state_->context;
  c.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  bool encrypted = false;
  ::SSL_CTX* const native = c.native_handle();
  ::SSL_CTX_set_default_passwd_cb(native, detail::no_passphrase);
  ::SSL_CTX_set_default_passwd_cb_userdata(native, &encrypted);
  asio::error_code no_chain, no_key;
  c.use_certificate_chain(asio::buffer(chain.text), no_chain);
  if (!no_chain) c.use_private_key(asio::buffer(key.text), asio::ssl::context::pem, no_key);
  ::SSL_CTX_set_default_passwd_cb_userdata(native, nullptr);  // which asio would free
  if (no_chain) throw error(fmt::format("{}: no certificates in PEM: {}", chain.name, no_chain.message()));
  if (encrypted)
    throw error(
        fmt::format("{}: the private key is encrypted, and nobody is asked for its passphrase: give it "
                    "without one (openssl pkey -in FILE -out NEW)",
                    key.name));
  if (no_key || ::SSL_CTX_check_private_key(native) != 1)
    throw error(fmt::format("{}: no private key of {}{}", key.name, chain.name,
                            no_key ? ": " + no_key.message() : std::string()));
}

struct socket::tls {
  asio::ssl::stream<asio::ip::tcp::socket&> stream;
};

EDL_INLINE socket::socket(asio::ip::tcp::socket s, server_certificate const* with) : plain_(std::move(s)) {
  asio::error_code failed;
  plain_.non_blocking(true, failed);  // for `write`
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
  // Mostly the socket takes it all, and nobody has to be woken for it.
  asio::error_code failed;
  std::size_t const taken = plain_.write_some(parts, failed), of_head = std::min(taken, head.size());
  if (failed && failed != asio::error::would_block) throw asio::system_error(failed);
  parts[0] += of_head;
  parts[1] += taken - of_head;
  if (asio::buffer_size(parts) > 0) co_await asio::async_write(plain_, parts, asio::use_awaitable);
}

EDL_INLINE asio::awaitable<void> socket::end() {
  asio::error_code failed;
  if (tls_)
    co_await tls_->stream.async_shutdown(asio::redirect_error(asio::use_awaitable, failed));
  else
    plain_.shutdown(asio::ip::tcp::socket::shutdown_send, failed);
}

EDL_INLINE void socket::close() {
  asio::error_code ignored;
  plain_.close(ignored);
}

}  // namespace edl::http
