// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "edl/base/http/client/client_connection.hpp"
#include "edl/base/net/security/certificates.hpp"
#include "edl/base/net/security/openssl.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::http {
namespace detail {

inline constexpr std::chrono::milliseconds ask_every{100};

// The time left, limited so that `stopped` is polled often enough.
inline std::chrono::milliseconds slice(limit const& within) {
  if (within.stopped && (*within.stopped)()) throw stopped_error("stopped");
  auto const left = std::chrono::ceil<std::chrono::milliseconds>(within.until - clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), ask_every);
}

struct addresses {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int code = 0;
  addrinfo* list = nullptr;
  ~addresses() {
    if (list) ::freeaddrinfo(list);
  }
};

// A resolver cannot be interrupted, so a separate thread looks the name up; a stopped call abandons it.
inline std::shared_ptr<addresses> resolve(std::string const& host, std::string const& port,
                                          limit const& within) {
  auto const found = std::make_shared<addresses>();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  found->code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found->list);
  if (found->code != EAI_NONAME) return found;
  hints.ai_flags = AI_ADDRCONFIG;
  std::thread([found, host, port, hints] {
    addrinfo* list = nullptr;
    int const code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    std::lock_guard const lock(found->mutex);
    found->code = code;
    found->list = list;
    found->done = true;
    found->changed.notify_all();
  }).detach();
  std::unique_lock lock(found->mutex);
  while (!found->done) {
    auto const time = slice(within);
    if (time.count() == 0) {
      auto const none = std::make_shared<addresses>();
      none->code = EAI_AGAIN;
      return none;
    }
    found->changed.wait_for(lock, time);
  }
  return found;
}

}  // namespace detail

EDL_INLINE endpoint parse_endpoint(std::string const& text, std::string_view what) {
  auto const bad = [&](char const* why) {
    return error(fmt::format("'{}' is not an address of {} ({}): write it as https://host:port",
                             printable(text, 200), what, why));
  };
  endpoint e;
  std::string_view rest = text;
  if (rest.starts_with("http://"))
    e.tls = false;
  else if (!rest.starts_with("https://"))
    throw bad("it begins with neither https:// nor http://");
  rest.remove_prefix(e.tls ? 8 : 7);
  auto const slash = std::min(rest.find('/'), rest.size());
  e.prefix = rest.substr(slash);
  while (e.prefix.ends_with('/')) e.prefix.pop_back();
  rest = rest.substr(0, slash);
  for (char c : text)
    if (c <= ' ' || c == 0x7f || c == '?' || c == '#' || c == '@') throw bad("it has a character too many");
  std::string_view port;
  if (rest.starts_with('[')) {
    auto const end = rest.find(']');
    if (end == rest.npos) throw bad("']' is missing");
    e.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    auto const colon = std::min(rest.find(':'), rest.size());
    e.host = rest.substr(0, colon);
    port = rest.substr(colon);
  }
  if (e.host.empty()) throw bad("it has no host");
  e.authority = rest;
  e.port = e.tls ? "443" : "80";
  if (!port.empty()) {
    e.port = port.substr(1);
    if (port[0] != ':' || number_from<std::uint16_t>(e.port).value_or(0) == 0)
      throw bad("its port is not a number from 1 to 65535");
  }
  return e;
}

EDL_INLINE std::string peer::describe() const {
  return fmt::format("{} {}{}", name, at.url(), origin.empty() ? "" : fmt::format(" ({})", origin));
}

EDL_INLINE client_connection::client_connection(peer const& to, std::shared_ptr<ssl_ctx_st> certificates,
                                                limit const& within)
    : where_(to.describe()), certificates_(std::move(certificates)) {
  try {
    open(to.at, within);
    if (to.at.tls) handshake(to, within);
  } catch (...) {
    close();
    throw;
  }
}

EDL_INLINE client_connection::~client_connection() { close(); }

EDL_INLINE void client_connection::close() {
  if (tls_) {
    SSL_shutdown(tls_);  // sends close_notify, and does not wait for the peer's
    SSL_free(tls_);
    ERR_clear_error();
  }
  if (fd_ >= 0) ::close(fd_);
  tls_ = nullptr;
  fd_ = -1;
}

namespace detail {

/// A hint to append to an error if the user's environment names a proxy.
inline char const* about_proxy() {
  for (char const* const name : {"HTTPS_PROXY", "https_proxy"})
    if (char const* const proxy = std::getenv(name); proxy && *proxy)
      return "; HTTPS_PROXY is set, but edl connects without a proxy: run it where it can reach the server";
  return "";
}

}  // namespace detail

EDL_INLINE void client_connection::fail(std::string const& why) const {
  throw unreachable(where_ + " " + why);
}

EDL_INLINE void client_connection::late(limit const& within) const {
  fail(fmt::format("has not answered for {} s", double(within.time.count()) / 1000));
}

EDL_INLINE void client_connection::wait(int events, limit const& within) const {
  for (;;) {
    auto const time = detail::slice(within);
    pollfd p{fd_, short(events), 0};
    int const n = ::poll(&p, 1, int(time.count()));
    if (n > 0) return;
    if (n < 0 && errno != EINTR) fail(fmt::format("cannot be waited for: {}", std::strerror(errno)));
    if (time.count() == 0) late(within);
  }
}

EDL_INLINE void client_connection::open(endpoint const& to, limit const& within) {
  auto const found = detail::resolve(to.host, to.port, within);
  if (found->code != 0)
    fail(fmt::format("cannot be reached: '{}' is not found ({}); is its address right?{}", to.host,
                     ::gai_strerror(found->code), detail::about_proxy()));
  std::ptrdiff_t left = 0;
  for (auto const* a = found->list; a; a = a->ai_next) ++left;
  std::string why;
  for (auto const* a = found->list; a; a = a->ai_next, --left) {
    invariant(left > 0 && fd_ < 0, "each address has its share of the time, one after the other");
    limit share = within;  // so that an unresponsive address leaves time for the next one
    auto const now = clock::now();
    share.until = now + (within.until - now) / left;
    fd_ = ::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      why = std::strerror(errno);
      continue;
    }
    int code = ::connect(fd_, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
      try {
        wait(POLLOUT, share);
        socklen_t size = sizeof code;
        ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &code, &size);
      } catch (unreachable const&) {
        code = ETIMEDOUT;
      }
    }
    if (code == 0) break;
    why = std::strerror(code);
    ::close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0)
    fail(fmt::format("cannot be reached: {}; does it run, and is its address right?{}", why,
                     detail::about_proxy()));
  auto const set = [&](int level, int name, int value) {
    ::setsockopt(fd_, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A peer that has vanished sends nothing, and neither does a watch: keepalive makes the kernel probe it.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

EDL_INLINE void client_connection::handshake(peer const& to, limit const& within) {
  invariant(fd_ >= 0 && !tls_, "a handshake is made once, on a connection that is open");
  net::verification v{to.certified.empty() ? to.at.host : to.certified, to.other_name, to.other_authority};
  tls_ = net::start_tls(*certificates_, fd_, v);
  for (;;) {
    ERR_clear_error();
    errno = 0;
    int const n = SSL_connect(tls_);
    if (n == 1) break;
    if (!v.problem.empty()) throw untrusted(fmt::format("{} is not trusted: {}", where_, v.problem));
    wait_tls(n, within);
  }
  net::end_verification(*tls_);
}

// Returns when the operation whose result was `result` should be retried.
EDL_INLINE void client_connection::wait_tls(int result, limit const& within) {
  int const code = errno;
  switch (SSL_get_error(tls_, result)) {
    case SSL_ERROR_WANT_READ:
      return wait(POLLIN, within);
    case SSL_ERROR_WANT_WRITE:
      return wait(POLLOUT, within);
    case SSL_ERROR_SYSCALL:
      fail(fmt::format("broke off: {}", code == 0 ? "the connection was closed" : std::strerror(code)));
    case SSL_ERROR_ZERO_RETURN:
      fail("broke off: the connection was closed");
    default:
      break;
  }
  auto const reason = ERR_GET_REASON(ERR_peek_error());
  auto const text = net::openssl_errors();
  if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) fail("broke off: the connection was closed");
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
    throw untrusted(fmt::format("{} does not speak TLS: should its address begin with http://?", where_));
  if (reason >= SSL_AD_REASON_OFFSET)
    throw untrusted(fmt::format("{} refuses this side's certificate or TLS version: {}", where_, text));
  fail(fmt::format("broke off: {}", text));
}

EDL_INLINE void client_connection::send(std::string_view bytes, limit const& within) {
  invariant(fd_ >= 0, "bytes are sent over a connection that is open");
  while (!bytes.empty()) {
    if (tls_) {
      ERR_clear_error();
      errno = 0;
      int const n = SSL_write(tls_, bytes.data(), int(std::min<std::size_t>(bytes.size(), 1 << 20)));
      if (n > 0)
        bytes.remove_prefix(std::size_t(n));
      else
        wait_tls(n, within);
      continue;
    }
    auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0)
      bytes.remove_prefix(std::size_t(n));
    else if (errno == EAGAIN)
      wait(POLLOUT, within);
    else if (errno != EINTR)
      fail(fmt::format("broke off: {}", std::strerror(errno)));
  }
}

EDL_INLINE std::size_t client_connection::receive(std::span<char> into, limit const& within) {
  invariant(fd_ >= 0 && !into.empty(), "bytes are received over a connection that is open, into some room");
  // A server that sends a byte at a time never makes us wait, and yet the whole may take too long.
  if (detail::slice(within).count() == 0) late(within);
  for (;;) {
    if (tls_) {
      ERR_clear_error();
      errno = 0;
      int const n = SSL_read(tls_, into.data(), int(into.size()));
      if (n > 0) return std::size_t(n);
      if (SSL_get_error(tls_, n) == SSL_ERROR_ZERO_RETURN) return 0;
      wait_tls(n, within);
      continue;
    }
    auto const n = ::recv(fd_, into.data(), into.size(), 0);
    if (n >= 0) return std::size_t(n);
    if (errno == EAGAIN)
      wait(POLLIN, within);
    else if (errno != EINTR)
      fail(fmt::format("broke off: {}", std::strerror(errno)));
  }
}

EDL_INLINE bool client_connection::idle() const {
  char byte;
  if (!tls_) return ::recv(fd_, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
  // A server may send session tickets at any time. OpenSSL consumes them; only data or an end of stream would
  // show up here.
  ERR_clear_error();
  int const n = SSL_peek(tls_, &byte, 1);
  return n <= 0 && SSL_get_error(tls_, n) == SSL_ERROR_WANT_READ;
}

}  // namespace edl::http
