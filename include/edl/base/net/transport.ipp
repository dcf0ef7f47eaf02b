// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/error.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/redirect_error.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "edl/base/net/security/token.hpp"
#include "edl/base/net/transport.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::net::detail {

EDL_INLINE asio::awaitable<void> connect(asio::generic::stream_protocol::socket& s, address const& to,
                                         bool const& too_late) {
  std::vector<asio::generic::stream_protocol::endpoint> ends;
  asio::error_code failed;
  if (to.over == address::transport::local) {
    ends.push_back(local_endpoint(to));
  } else if (auto const number = asio::ip::make_address(to.host, failed); !failed) {
    ends.emplace_back(asio::ip::tcp::endpoint(number, to.port));
  } else {
    asio::ip::tcp::resolver resolver(s.get_executor());
    auto const found = co_await resolver.async_resolve(to.host, std::to_string(to.port), asio::use_awaitable);
    for (auto const& entry : found) ends.emplace_back(entry.endpoint());
    // The first host to answer need not be the peer: the next tries begin with other addresses.
    if (ends.size() > 1)
      std::ranges::rotate(ends, ends.begin() + std::ptrdiff_t(std::size_t(draw_nonce()[0]) % ends.size()));
  }
  failed = asio::error::host_not_found;
  for (auto const& end : ends) {
    if (too_late) break;
    asio::error_code ignored;
    s.close(ignored);
    s.open(end.protocol());
    co_await s.async_connect(end, asio::redirect_error(asio::use_awaitable, failed));
    if (!failed) break;
  }
  if (too_late) failed = asio::error::timed_out;
  if (failed) throw asio::system_error(failed);
  if (to.over == address::transport::local) check_owner(s);
  tune(s);
}

EDL_INLINE asio::generic::stream_protocol::endpoint local_endpoint(address const& a) {
  return asio::local::stream_protocol::endpoint(a.is_path() ? a.host : std::string(1, '\0') + a.host);
}

EDL_INLINE void check_owner(asio::generic::stream_protocol::socket& s) {
  ::ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(s.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    throw asio::system_error(asio::error_code(errno, asio::system_category()));
  if (who.uid != ::geteuid())
    throw error(fmt::format("its other end is a process of user {}, but this process belongs to user {}",
                            who.uid, ::geteuid()));
}

EDL_INLINE void tune(asio::generic::stream_protocol::socket& s) {
  auto const set = [fd = s.native_handle()](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);  // none of them is needed for correctness
  };
  asio::error_code failed;
  auto const end = s.local_endpoint(failed);
  if (failed) return;
  if (end.protocol().family() == AF_UNIX) {
    set(SOL_SOCKET, SO_SNDBUF, 1 << 20);  // the default holds 200 KiB; TCP tunes itself
    return;
  }
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

EDL_INLINE std::string peer_name(asio::generic::stream_protocol::socket& s, address const& listening) {
  if (listening.over == address::transport::local) {
    ::ucred who{};
    socklen_t size = sizeof who;
    ::getsockopt(s.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size);
    return fmt::format("{} (process {})", place_of(listening), who.pid);
  }
  asio::error_code failed;
  auto const end = s.remote_endpoint(failed);
  if (failed) return "tcp:unknown";
  asio::ip::tcp::endpoint who;
  who.resize(end.size());
  std::memcpy(who.data(), end.data(), end.size());
  return to_string({address::transport::tcp, who.address().to_string(), who.port()});
}

}  // namespace edl::net::detail
