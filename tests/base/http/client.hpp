// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "edl/base/http/server.hpp"

/// What tests say to an HTTP server, byte by byte.
namespace http_client {

inline edl::net::node_options node_options() {
  return {.job = "test", .secret = edl::net::token::random(), .log = edl::logger(edl::severity::critical)};
}

class connection {
 public:
  explicit connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    ::sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<::sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("the server does not listen");
  }
  connection(connection const&) = delete;
  connection& operator=(connection const&) = delete;
  ~connection() { ::close(fd_); }

  connection& say(std::string_view bytes) {
    while (!bytes.empty()) {
      auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) break;
      bytes.remove_prefix(std::size_t(n));
    }
    return *this;
  }
  void say_no_more() { ::shutdown(fd_, SHUT_WR); }

  /// Up to and with `end`; less where the server closes before.
  std::string until(std::string_view end) {
    while (buffer_.find(end) == buffer_.npos && more()) {
    }
    return cut(std::min(buffer_.find(end), buffer_.size() - std::min(buffer_.size(), end.size())) +
               end.size());
  }
  std::string bytes(std::size_t n) {
    while (buffer_.size() < n && more()) {
    }
    return cut(n);
  }
  /// Until the server closes.
  std::string rest() {
    while (more()) {
    }
    return cut(buffer_.size());
  }
  /// One answer whose length is told: head and body.
  std::string answer() {
    std::string head = until("\r\n\r\n");
    auto const at = head.find("Content-Length: ");
    return at == head.npos ? head : head + bytes(std::stoul(head.substr(at + 16)));
  }

 private:
  bool more() {
    char some[4096];
    auto const n = ::recv(fd_, some, sizeof some, 0);
    if (n <= 0) return false;
    buffer_.append(some, std::size_t(n));
    return true;
  }
  std::string cut(std::size_t n) {
    std::string out = buffer_.substr(0, n);
    buffer_.erase(0, n);
    return out;
  }
  int fd_;
  std::string buffer_;
};

inline std::string get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: here\r\n" + std::string(more) + "\r\n";
}
inline std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: here\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(more) + "\r\n" + std::string(body);
}

/// The whole answer to one request on a connection of its own.
inline std::string ask(std::uint16_t port, std::string_view request) {
  connection c(port);
  return c.say(request).answer();
}

}  // namespace http_client
