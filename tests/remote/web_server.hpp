// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// A web server that says byte by byte what a test wants.
namespace web {

struct request {
  std::string path;
  std::uint64_t first = 0, last = 0;  ///< of its range; 0 where it has none
  int number = 0;                     ///< from 1 on, of this server
};

/// What becomes of the connection after the bytes.
enum class then { keep, close, silence, drip };

struct reply {
  std::string bytes;
  web::then then = web::then::keep;
};

inline std::string head(std::string_view status, std::uint64_t length, std::string_view more = {}) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(length) + "\r\n" +
         std::string(more) + "\r\n";
}

inline std::string content_range(std::uint64_t first, std::uint64_t last, std::uint64_t size) {
  return "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
         std::to_string(size) + "\r\n";
}

/// The right answer to a request for a part of a file.
inline std::string part(std::string const& file, request const& r, std::string_view more = {}) {
  if (r.first >= file.size())
    return head("416 Range Not Satisfiable", 0,
                "Content-Range: bytes */" + std::to_string(file.size()) + "\r\n");
  auto const last = std::min<std::uint64_t>(r.last, file.size() - 1);
  return head("206 Partial Content", last - r.first + 1,
              content_range(r.first, last, file.size()) + std::string(more)) +
         file.substr(r.first, last - r.first + 1);
}

class server {
 public:
  using answer = std::function<reply(request const&)>;

  explicit server(answer a) : answer_(std::move(a)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    ::socklen_t size = sizeof here;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&here), size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size) != 0 || ::pipe(end_) != 0)
      throw std::runtime_error("no server on this machine");
    port_ = ntohs(here.sin_port);
    acceptor_ = std::jthread([this] { accept(); });
  }

  /// Serves files by name.
  explicit server(std::map<std::string, std::string> files)
      : server([files = std::move(files)](request const& r) -> reply {
          auto const it = files.find(r.path);
          return {it == files.end() ? head("404 Not Found", 0) : part(it->second, r)};
        }) {}

  ~server() {
    (void)!::write(end_[1], "", 1);
    acceptor_.join();
    connections_.clear();  // joins
    for (int const fd : {listener_, end_[0], end_[1]}) ::close(fd);
  }
  server(server const&) = delete;
  server& operator=(server const&) = delete;

  std::string url(std::string const& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  int requests() const { return requests_; }

 private:
  // Whether there is something to read, and the server goes on.
  bool ready(int fd) const {
    pollfd both[]{{fd, POLLIN, 0}, {end_[0], POLLIN, 0}};
    return ::poll(both, 2, -1) > 0 && both[1].revents == 0;
  }

  void accept() {
    while (ready(listener_)) {
      int const fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) connections_.emplace_back([this, fd] { serve(fd), ::close(fd); });
    }
  }

  void serve(int fd) {
    std::string in;
    char some[4096];
    while (true) {
      auto const end = in.find("\r\n\r\n");
      if (end == in.npos) {
        auto const n = ready(fd) ? ::recv(fd, some, sizeof some, 0) : 0;
        if (n <= 0) return;
        in.append(some, std::size_t(n));
        continue;
      }
      reply const r = answer_(parse(in.substr(0, end + 2)));
      in.erase(0, end + 4);
      if (r.then == then::drip) return drip(fd, r.bytes);
      for (std::size_t at = 0; at < r.bytes.size();) {
        auto const n = ::send(fd, r.bytes.data() + at, r.bytes.size() - at, MSG_NOSIGNAL);
        if (n <= 0) return;
        at += std::size_t(n);
      }
      if (r.then == then::close) return;
      if (r.then == then::silence) {
        while (ready(fd) && ::recv(fd, some, sizeof some, 0) > 0) {
        }
        return;
      }
    }
  }

  // A byte in each millisecond, until nobody listens.
  void drip(int fd, std::string const& bytes) const {
    for (char const c : bytes) {
      pollfd end{end_[0], POLLIN, 0};
      if (::poll(&end, 1, 1) != 0 || ::send(fd, &c, 1, MSG_NOSIGNAL) != 1) return;
    }
  }

  request parse(std::string const& text) {
    request r{.number = ++requests_};
    auto const space = text.find(' ');
    r.path = text.substr(space + 1, text.find(' ', space + 1) - space - 1);
    std::string_view const mark = "Range: bytes=";
    if (auto const at = text.find(mark); at != text.npos) {
      char const* const end = text.data() + text.size();
      auto const first = std::from_chars(text.data() + at + mark.size(), end, r.first);
      std::from_chars(first.ptr + 1, end, r.last);
    }
    return r;
  }

  answer answer_;
  int listener_ = -1, end_[2]{};
  int port_ = 0;
  std::atomic<int> requests_ = 0;
  std::vector<std::jthread> connections_;  // of the acceptor alone, until it has ended
  std::jthread acceptor_;
};

}  // namespace web
