// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "edl/base/net/security/tls.hpp"
#include "edl/core/span.hpp"

namespace edl::net {

/// An owned file descriptor, closed once. Thread safety: as an int.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A connection for raw bytes: a non-blocking socket, encrypted if the connection is. No function blocks:
/// poll the descriptor. Thread safety: unsafe.
class byte_stream {
 public:
  byte_stream() = default;
  byte_stream(descriptor socket) : socket_(std::move(socket)) {}  // NOLINT: a socket is a plain stream
  byte_stream(descriptor socket, std::unique_ptr<tls_session> tls);

  int get() const { return socket_.get(); }
  explicit operator bool() const { return bool(socket_); }

  /// Number of bytes sent from the front of `from`, or received into `into`; 0: poll, and retry. Throws
  /// `edl::error` if the peer has closed the connection or the data was altered.
  std::size_t send(bytes from);
  std::size_t receive(std::span<std::byte> into);

  /// Whether bytes accepted by `send` wait for the socket: call `send` again, even with nothing, to send
  /// them.
  bool unsent() const { return tls_ && tls_->unsent(); }

  /// Whether `receive` would return bytes even if the socket has none.
  bool buffered() const { return tls_ && tls_->buffered(); }

 private:
  descriptor socket_;
  std::unique_ptr<tls_session> tls_;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/byte_stream.ipp"
#endif
