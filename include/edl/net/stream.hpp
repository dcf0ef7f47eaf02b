// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "edl/net/address.hpp"
#include "edl/net/node.hpp"

namespace edl::net {

/// A file descriptor of one's own, closed once. Thread safety: as an int.
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

/// Takes a connection for raw bytes that a peer has opened: its socket (non-blocking), what it is for, and
/// who opened it, for people. Called on the node's thread; the bytes are anybody's business.
using stream_handler =
    std::function<void(descriptor socket, std::string const& what, std::string const& peer)>;

/// Opens a connection for raw bytes to the first of the peer's addresses that answers and proves itself, Unix
/// sockets first. `name` stands in errors, `what` is told to the peer's listener (at most 200 bytes). The
/// socket is non-blocking. Throws `call_error`. On the node's thread.
asio::awaitable<descriptor> open_stream(node& on, std::vector<address> peer, std::string name,
                                        std::string what, std::chrono::milliseconds timeout);

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/net/stream.ipp"
#endif
