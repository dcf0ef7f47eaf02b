// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <cerrno>
#include <system_error>

#include "edl/base/net/byte_stream.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE descriptor::~descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

EDL_INLINE byte_stream::byte_stream(descriptor socket, std::unique_ptr<tls_session> tls)
    : socket_(std::move(socket)), tls_(std::move(tls)) {}

EDL_INLINE std::size_t byte_stream::send(bytes from) {
  if (tls_) {
    asio::error_code failed;
    asio::const_buffer const one(from.data(), from.size());
    std::size_t const n = tls_->write({&one, 1}, failed);
    if (failed && failed != asio::error::would_block) throw error(failed.message());
    return n;
  }
  if (from.empty()) return 0;
  ssize_t const n = ::send(get(), from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return std::size_t(n);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw error(std::generic_category().message(errno));
}

EDL_INLINE std::size_t byte_stream::receive(std::span<std::byte> into) {
  if (tls_) {
    asio::error_code failed;
    std::size_t const n = tls_->read(into, failed);
    if (failed && failed != asio::error::would_block) throw error(failed.message());
    return n;
  }
  ssize_t const n = ::recv(get(), into.data(), into.size(), MSG_DONTWAIT);
  if (n > 0 || into.empty()) return std::size_t(n);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  throw error(n == 0 ? "the peer has closed the connection" : std::generic_category().message(errno));
}

}  // namespace edl::net
