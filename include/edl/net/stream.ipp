// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <cerrno>
#include <memory>
#include <system_error>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/net/handshake.hpp"
#include "edl/net/secure_socket.hpp"
#include "edl/net/status.hpp"
#include "edl/net/stream.hpp"
#include "edl/net/time_limit.hpp"
#include "edl/net/transport.hpp"

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

EDL_INLINE asio::awaitable<byte_stream> open_stream(node& on, std::vector<address> peer, std::string name,
                                                    std::string what, std::chrono::milliseconds timeout) {
  std::stable_partition(peer.begin(), peer.end(),
                        [](auto const& a) { return a.over == address::transport::local; });
  auto const until = std::chrono::steady_clock::now() + timeout;
  std::string why;
  for (address const& where : peer) {
    auto const s = std::make_shared<secure_socket>(on.executor());
    bool late = false;
    std::string failed;
    try {
      detail::time_limit const limit(on.executor(), until, [s, &late] {
        late = true;
        s->close();
      });
      co_await detail::connect(s->plain(), where, late);
      co_await greet_server(*s, on.options(), on.tls(), where, what);
    } catch (asio::system_error const& e) {
      failed = late ? fmt::format("no answer within {} ms", timeout.count()) : e.code().message();
    } catch (std::exception const& e) {
      failed = e.what();
    }
    if (!late && failed.empty()) co_return s->release();
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", to_string(where), failed);
  }
  throw call_error(status::unavailable, fmt::format("{} cannot be reached: {}", name, why));
}

}  // namespace edl::net
